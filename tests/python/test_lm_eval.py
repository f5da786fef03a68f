"""The model of lm-evaluation-harness gives what the run gives."""

import pytest

import tarn

pytest.importorskip("lm_eval")


def test_a_run_is_a_model_of_the_harness(text_run: tarn.Trained) -> None:
    from lm_eval.api.instance import Instance
    from lm_eval.api.registry import get_model

    import tarn.lm_eval

    def ask(kind: str, *arguments: tuple[object, ...]) -> list[Instance]:
        return [Instance(kind, {}, given, i) for i, given in enumerate(arguments)]

    model = get_model("tarn").create_from_arg_string(f"path={text_run.run}", {"batch_size": 1, "device": "cpu"})
    assert isinstance(model, tarn.lm_eval.TarnLM)
    pairs = [("A dog", " sees a cat"), ("", "A dog")]
    with tarn.Run(text_run.run) as run:
        wanted = run.continuations(pairs)
        assert model.loglikelihood(ask("loglikelihood", *pairs)) == [(w.log_probability, w.greedy) for w in wanted]
        assert model.loglikelihood_rolling(ask("loglikelihood_rolling", ("A dog",))) == [wanted[1].log_probability]
        text = run.generate(["A dog"], max_tokens=12)[0][0].continuation
        assert model.generate_until(ask("generate_until", ("A dog", {"until": [], "max_gen_toks": 12}))) == [text]
        if len(text) > 2:
            stopped = model.generate_until(ask("generate_until", ("A dog", {"until": [text[2]], "max_gen_toks": 12})))
            assert stopped == [text[: text.index(text[2])]]
        draws = [("A dog", {"do_sample": True, "temperature": 1.5, "max_gen_toks": 20})] * 4
        assert len(set(model.generate_until(ask("generate_until", *draws)))) > 1
        with pytest.raises(tarn.UsageError, match="the task wants colour"):
            model.generate_until(ask("generate_until", ("A dog", {"colour": 1})))
