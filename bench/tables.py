"""Tables for eyes."""


def text_of(cell):
    """A cell is a text, or a number with its decimals; None becomes a dash."""
    if not isinstance(cell, tuple):
        return cell
    value, decimals = cell
    return "-" if value is None else f"{value:,.{decimals}f}"


def print_table(head, rows, notes):
    """The first column stands left, all others right."""
    lines = [head] + [[text_of(cell) for cell in row] for row in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    for line in lines:
        cells = [line[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(line[1:], widths[1:])]
        print("  ".join(cells))
    for note in notes:
        print(note)
    print()
