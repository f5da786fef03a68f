"""Writes tarn/_binding.py, the libraries' interface for ctypes, from the headers of include/tarn/.

usage: make_binding.py COMPILER INCLUDE VERSION OUTPUT

The compiler's preprocessor expands the headers and pycparser reads them, so that no structure, number of a choice or
signature is written a second time in Python.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from pycparser import c_ast, c_parser

# What the headers take from the C library, in place of headers that only a compiler understands.
SYSTEM = {
    "stdbool.h": "typedef _Bool bool;",
    "stddef.h": "typedef unsigned long size_t;\n#define NULL 0",
    "stdint.h": "typedef signed char int8_t; typedef unsigned char uint8_t; typedef short int16_t;"
    "typedef unsigned short uint16_t; typedef int int32_t; typedef unsigned int uint32_t;"
    "typedef long int64_t; typedef unsigned long uint64_t;\n#define INT64_MAX 9223372036854775807",
    "signal.h": "typedef int sig_atomic_t;",
    "stdio.h": "typedef struct FILE FILE;",
}
NUMBERS = {
    "_Bool": "c_bool",
    "bool": "c_bool",
    "char": "c_char",
    "double": "c_double",
    "float": "c_float",
    "int": "c_int",
    "int8_t": "c_int8",
    "int16_t": "c_int16",
    "int32_t": "c_int32",
    "int64_t": "c_int64",
    "uint8_t": "c_uint8",
    "uint16_t": "c_uint16",
    "uint32_t": "c_uint32",
    "uint64_t": "c_uint64",
    "unsigned int": "c_uint",
    "size_t": "c_size_t",
    "sig_atomic_t": "c_int",
}


def preprocess(compiler: str, include: Path) -> str:
    """All public headers, expanded, without comments and attributes."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in SYSTEM.items():
            (Path(folder) / name).write_text(f"#pragma once\n{text}\n")
        headers = "".join(f'#include "{path.relative_to(include)}"\n' for path in sorted((include / "tarn").rglob("*.h")))
        # Without __GNUC__ the headers have no attributes.
        command = [compiler, "-E", "-P", "-nostdinc", "-U__GNUC__", "-x", "c", f"-I{folder}", f"-I{include}", "-"]
        return subprocess.run(command, input=headers, text=True, stdout=subprocess.PIPE, check=True).stdout


class Binding:
    """Collects what the headers declare and writes it down as Python."""

    def __init__(self) -> None:
        self.constants: dict[str, int] = {}
        self.structures: dict[str, c_ast.Struct] = {}  # by tag, in the order of their definitions
        self.opaque: dict[str, None] = {}
        self.names: dict[str, str] = {}  # typedef names of structures: their tags
        self.callbacks: dict[str, c_ast.FuncDecl] = {}
        self.functions: dict[str, c_ast.FuncDecl] = {}
        self.enums: dict[str, None] = {}

    def number(self, node: c_ast.Node | None) -> int:
        """The value of a constant expression."""
        if isinstance(node, c_ast.Constant):
            return ord(node.value[1]) if node.type == "char" else int(node.value.rstrip("uUlL"), 0)
        if isinstance(node, c_ast.ID):
            return self.constants[node.name]
        if isinstance(node, c_ast.UnaryOp) and node.op == "-":
            return -self.number(node.expr)
        if isinstance(node, c_ast.BinaryOp):
            left, right = self.number(node.left), self.number(node.right)
            values = {"+": left + right, "-": left - right, "*": left * right}
            if node.op == "<<":
                return left << right
            return values[node.op]
        raise SystemExit(f"make_binding: a constant that is not understood: {node}")

    def add_enum(self, enum: c_ast.Enum) -> None:
        if enum.name:
            self.enums[enum.name] = None
        value = 0
        for item in enum.values.enumerators if enum.values else ():
            value = self.number(item.value) if item.value is not None else value
            self.constants[item.name] = value
            value += 1

    def add_struct(self, struct: c_ast.Struct) -> None:
        if struct.decls is None:
            self.opaque.setdefault(struct.name)
        else:
            for field in struct.decls:
                self.look_into(field.type)
            self.structures[struct.name] = struct

    def look_into(self, node: c_ast.Node) -> None:
        """Structures and choices that are defined, or named for the first time, within another declaration."""
        while isinstance(node, (c_ast.PtrDecl, c_ast.ArrayDecl, c_ast.TypeDecl)):
            node = node.type
        if isinstance(node, c_ast.Struct):
            self.add_struct(node)
        elif isinstance(node, c_ast.Enum):
            self.add_enum(node)

    def add(self, node: c_ast.Node) -> None:
        kind = node.type
        if isinstance(node, c_ast.Typedef):
            self.look_into(kind)
            if isinstance(kind, c_ast.TypeDecl) and isinstance(kind.type, c_ast.Struct):
                self.names[node.name] = kind.type.name
            elif isinstance(kind, c_ast.TypeDecl) and isinstance(kind.type, c_ast.Enum):
                self.enums[node.name] = None
            elif isinstance(kind, c_ast.PtrDecl) and isinstance(kind.type, c_ast.FuncDecl):
                self.callbacks[node.name] = kind.type
        elif isinstance(node, c_ast.Decl):
            if isinstance(kind, c_ast.FuncDecl):
                self.functions[node.name] = kind
            else:
                self.look_into(kind)

    def base(self, names: list[str]) -> str:
        name = " ".join(names)
        if name in NUMBERS:
            return NUMBERS[name]
        if name in self.enums:
            return "c_int"
        if name in self.names:
            return self.names[name]
        if name in self.callbacks:
            return name
        raise SystemExit(f"make_binding: a type that is not understood: {name}")

    def type(self, node: c_ast.Node, parameter: bool = False) -> str:
        """A declared type as ctypes has it; None is void."""
        if isinstance(node, c_ast.TypeDecl):
            if isinstance(node.type, c_ast.Struct):
                return str(node.type.name)
            if isinstance(node.type, c_ast.Enum):
                return "c_int"
            return "None" if node.type.names == ["void"] else self.base(node.type.names)
        if isinstance(node, c_ast.ArrayDecl):
            inner = self.type(node.type)
            return f"POINTER({inner})" if parameter else f"{inner} * {self.number(node.dim)}"
        if isinstance(node, c_ast.PtrDecl):
            if isinstance(node.type, c_ast.FuncDecl):
                return self.callback(node.type)
            inner = self.type(node.type)
            return {"None": "c_void_p", "c_char": "c_char_p"}.get(inner, f"POINTER({inner})")
        raise SystemExit(f"make_binding: a declaration that is not understood: {node}")

    def parameters(self, node: c_ast.FuncDecl) -> list[str]:
        types = [self.type(item.type, True) for item in (node.args.params if node.args else ())]
        return [] if types == ["None"] else types

    @staticmethod
    def words(node: c_ast.FuncDecl) -> list[str]:
        """The names of the parameters."""
        return [item.name for item in (node.args.params if node.args else ()) if item.name]

    def callback(self, node: c_ast.FuncDecl) -> str:
        return f"CFUNCTYPE({', '.join([self.type(node.type), *self.parameters(node)])})"

    def write(self, version: str) -> str:
        ctypes = ["POINTER", "CFUNCTYPE", "c_char_p", "c_void_p", *sorted(set(NUMBERS.values()))]
        opaque = [name for name in self.opaque if name not in self.structures]
        lines = [
            '"""Generated by make_binding.py from include/tarn/; not to be changed by hand."""',
            "",
            "from __future__ import annotations",
            "",
            "from typing import Any",
            "",
            f"from ctypes import {', '.join(ctypes)}",
            "",
            "from ._check import Structure",
            "",
            f'VERSION = "{version}"',
            "",
            *(f"{name} = {value}" for name, value in self.constants.items()),
            "",
        ]
        for name in [*opaque, *self.structures]:
            lines += ["", f"class {name}(Structure):", "    pass", ""]
        for name, node in self.callbacks.items():
            lines.append(f"{name} = {self.callback(node)}")
        for name, struct in self.structures.items():
            fields = ", ".join(f'("{field.name}", {self.type(field.type)})' for field in struct.decls)
            lines.append(f"{name}._fields_ = [{fields}]")
        lines += ["", "# Of each function what it returns and takes.", "FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {"]
        for name, node in self.functions.items():
            lines.append(f'    "{name}": ({self.type(node.type)}, [{", ".join(self.parameters(node))}]),')
        lines += ["}", "", "# The names of what they take, for messages.", "NAMES: dict[str, list[str]] = {"]
        lines += [f'    "{name}": {self.words(node)},' for name, node in self.functions.items()]
        lines += ["}", "", "# Those that return a tarn_status.", "CHECKED = {"]
        lines += [f'    "{name}",' for name, node in self.functions.items() if self.returns(node) == "tarn_status"]
        return "\n".join([*lines, "}", ""])

    @staticmethod
    def returns(node: c_ast.FuncDecl) -> str:
        simple = isinstance(node.type, c_ast.TypeDecl) and isinstance(node.type.type, c_ast.IdentifierType)
        return " ".join(node.type.type.names) if simple else ""


def main() -> None:
    if len(sys.argv) != 5:
        raise SystemExit("usage: make_binding.py COMPILER INCLUDE VERSION OUTPUT")
    compiler, include, version, output = sys.argv[1:]
    binding = Binding()
    for node in c_parser.CParser().parse(preprocess(compiler, Path(include))).ext:
        binding.add(node)
    Path(output).write_text(binding.write(version))


if __name__ == "__main__":
    main()
