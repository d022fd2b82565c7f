"""Checks, predicts and compares exchanges that are replayed on a real MPI."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from earlybird.compare import compare_times, exchange_samples, measured_times
from earlybird.data import files, memory, units
from earlybird.data.comparison import Comparison
from earlybird.data.errors import InputError
from earlybird.data.exchange_models import MODELS
from earlybird.data.layout import Layout, layout_of_label, parse_layout, save_layout
from earlybird.data.pattern import Pattern, load_pattern, save_pattern
from earlybird.data.prediction import Prediction
from earlybird.data.profile import USUAL_CONTEXT, Profile, Replay
from earlybird.data.run import Run
from earlybird.launch.launcher import Launcher
from earlybird.measure.launchers import Note, ignore
from earlybird.predict import (
    COMBINE,
    MIXED,
    SHARES,
    Packing,
    Predictor,
    one_after_the_other,
    over_empty_exchange,
    silent_senders,
)
from earlybird.predict.reuse import MIN_RATIO, reuse_note

_PATTERN, _LAYOUT = "pattern.npz", "layout.csv"  # of a run of `replay`
# What packs the messages of a replay, and what the prediction says of it: the MPI packs as much inside of
# sends of a datatype as in MPI_Pack.
REPLAY_PACKERS = {"mpi": "mpi", "loop": "loop", "datatype": "mpi"}
DOUBLE_BYTES = 8  # of what packed data are made of
# Memory of packed data by layout, per byte of a message: the doubles with the gaps between them, the packed
# message, and an index per double (native/kernels/packed/packed_data.hpp). Of a datatype with indices the MPI
# keeps up to 6.1 bytes (Open MPI 5; Intel MPI 3.1, MPICH 2).
_PACKED_MEMORY = {"contiguous": 1 + 1 + 0.5, "strided": 8 + 1 + 0.5, "indexed": 8 + 1 + 0.5 + 6.1}
# Maximum share of free memory for the buffers of both sides of all messages.
_MEMORY_SHARE = 0.7
# The error of another prediction that is worth a note, as part of the error of the one that was asked for.
_MUCH_LESS = 0.75


def check_exchange(
    pattern: Pattern, layout: Layout, launcher: Launcher, packing: Packing | None = None
) -> None:
    """Raise InputError if the ranks cannot be placed or the buffers do not fit into memory."""
    pattern.check_ranks(layout.num_ranks)
    launcher.check(layout)
    free = memory.available_memory_bytes() * layout.num_nodes
    if packing is not None and launcher.name in ("simgrid", "synthetic"):
        raise InputError(
            f"--packing needs ranks that pack, and those of the launcher {launcher.name} do not; omit it, or "
            "give another --launcher"
        )
    needed = 2 * pattern.total_bytes * (1.0 if packing is None else _PACKED_MEMORY[packing.layout])
    if launcher.name != "synthetic" and needed > _MEMORY_SHARE * free:
        raise InputError(
            f"the pattern needs {units.format_bytes(needed)} for its buffers and "
            f"{units.format_bytes(free)} are free; give a smaller pattern"
        )


def predict_all(
    pattern: Pattern,
    layout: Layout,
    profile: Profile,
    share: str = SHARES[0],
    mixed: str = MIXED[0],
    combine: str = COMBINE[0],
    note: Note = ignore,
    packing: Packing | None = None,
) -> dict[str, Prediction]:
    """Predict by all models that apply; raise InputError if none does.

    Where no messages pass between nodes, models that differ from another one between nodes only are omitted.
    """
    predictions, refusals = {}, []
    exchange = Predictor(pattern, layout, mixed=mixed, combine=combine)
    for model, record in MODELS.items():
        if record.inside and "inter_node" not in exchange.levels:
            continue
        try:
            predictions[model] = exchange.predict(profile, model, share=share, packing=packing)
        except InputError as error:
            refusals.append(error)
    if not predictions:
        raise refusals[0]
    for refusal in refusals:
        note(f"omitted: {refusal}")
    return predictions


def predict_stages(
    stages: Sequence[Pattern],
    layout: Layout,
    profile: Profile,
    note: Note = ignore,
    packing: Packing | None = None,
    **variant: str,
) -> dict[str, Prediction]:
    """Predict exchanges one after the other, by the models that apply to every one."""
    timed = [stage for stage in stages if stage.num_messages] or stages[:1]
    every = [predict_all(stage, layout, profile, note=note, packing=packing, **variant) for stage in timed]
    if len(every) == 1:
        return every[0]
    same = {model: record.inside for model, record in MODELS.items() if record.inside}
    every = [
        {model: stage[inside] for model, inside in same.items() if inside in stage} | stage for stage in every
    ]
    joined = {model: [stage[model] for stage in every if model in stage] for model in MODELS}
    return {model: one_after_the_other(times) for model, times in joined.items() if len(times) == len(every)}


def compare_run(
    run: Run,
    pattern: Pattern,
    layout: Layout,
    profiles: Sequence[Profile],
    joined: Profile,
    predictions: Mapping[str, Prediction],
    share: str = SHARES[0],
    mixed: str = MIXED[0],
    combine: str = COMBINE[0],
    note: Note = ignore,
    packing: Packing | None = None,
) -> Comparison:
    """Compare the exchange measured in `run` with the `predictions` from `profiles`, `joined`, made with
    `share`, `mixed`, `combine` and `packing`, and store the comparison in the run folder."""
    samples = exchange_samples(run.samples())
    predictor = Predictor(pattern, layout, mixed=mixed, combine=combine)
    compared = _compared(run, predictor, joined, predictions, share, packing)
    levels, chosen = set(predictor.levels), predictor.choose_model(joined)
    notes = [
        difference
        for profile in profiles
        for difference in _context_notes(samples[0].config["mpi"], run.launches()[-1], profile, levels)
    ]
    for difference in notes:
        note(f"warning: {difference}")
    first = next(iter(predictions.values()))
    if silent := silent_senders(pattern, first.time_s, first.model):
        note(silent)
        notes.append(silent)
    predicted_s = predictions[chosen.name].time_s if chosen.name in predictions else first.time_s
    is_faster = predicted_s.max() >= MIN_RATIO * compared.measured_s.max()
    if is_faster and (reused := reuse_note(pattern, layout, joined)):
        note(reused)
        notes.append(reused)
    packed_by = None
    if packing is not None:
        packed_by = str(samples[0].config.get("packing_by") or packing.by)
        notes.append(
            f"ranks pack and unpack {packing.layout} data ({packed_by}); predictions add that, with "
            f"{packing.cache} caches"
        )
    oversubscribed = any(sample.oversubscribed for sample in samples)
    if oversubscribed:
        notes.append("more ranks than cores: waiting ranks yield, and the times include scheduling delays")
    extra = {
        "default_model": chosen.name,
        **chosen.to_json(),
        "run_id": run.id,
        "profile_id": first.profile_id,
        "pattern_sha256": pattern.sha256(),
        "layout": layout.text,
        "oversubscribed": oversubscribed,
        "notes": notes,
    }
    for prediction in predictions.values():
        extra |= {
            name: prediction.extra[name] for name in ("share", "mixed", "combine") if name in prediction.extra
        }
    if packing is not None:
        # What packs the messages of the run may have no costs of its own: see REPLAY_PACKERS.
        extra |= packing.to_json() | {"packing_by": packed_by, "predicted_packing_by": packing.by}
    compared = replace(compared, extra=extra)
    files.write_json(run.path / "comparison.json", compared.to_json(), follows_link=False)
    return compared


def _compared(
    run: Run,
    predictor: Predictor,
    profile: Profile,
    predictions: Mapping[str, Prediction],
    share: str = SHARES[0],
    packing: Packing | None = None,
) -> Comparison:
    samples = run.samples()
    empty = None
    if without_data := exchange_samples(samples, empty=True):
        empty_s = measured_times(without_data)
        models = [model for model in predictions if MODELS[model].is_joint]
        empty = empty_s, over_empty_exchange(predictor, profile, models, share, empty_s, packing)
    return compare_times(measured_times(exchange_samples(samples)), predictions, empty)


def is_replay(path: Path) -> bool:
    """Return whether `path` is a run folder of `earlybird replay`."""
    return (path / _PATTERN).is_file()


def replayed_exchange(run: Run) -> tuple[list[Pattern], Layout]:
    """Return the exchanges of a run of `replay`, one after the other, and where their ranks were."""
    settings = run.header.get("settings") or {}
    messages = load_pattern(run.path / _PATTERN)
    text = settings.get("layout_text") or settings.get("layout") or ""
    # From the run: the original layout file may have changed or be missing. Runs of `demo` have none.
    where = None if (run.path / _LAYOUT).is_file() else layout_of_label(text)
    where = replace(parse_layout(str(run.path / _LAYOUT)), text=text) if where is None else where
    counts = settings.get("stages") or [messages.num_messages]
    if sum(counts) != messages.num_messages:
        raise InputError(
            f"{run.path} has stages of {sum(counts)} messages, and {messages.num_messages} in {_PATTERN}; "
            "replay again"
        )
    return messages.divided(counts), where


def exchange_settings(
    stages: Sequence[Pattern], layout: Layout, profiles: Sequence[Path], variant: Mapping[str, str | None]
) -> dict[str, Any]:
    """Return the settings of a run that replays `stages`, with which it can be continued with the same
    predictions."""
    settings: dict[str, Any] = {"layout_text": layout.text}
    if profiles:
        settings["profile"] = [str(Path(files.shipped(path)).absolute()) for path in profiles]
        settings |= {name: given for name, given in variant.items() if given}
    return settings | ({"stages": [stage.num_messages for stage in stages]} if len(stages) > 1 else {})


def save_exchange(messages: Pattern, layout: Layout, folder: Path) -> None:
    """Write the files that `replayed_exchange` reads into the folder of a run."""
    save_pattern(messages, folder / _PATTERN)
    save_layout(layout, folder / _LAYOUT)


def packing_of(settings: Mapping[str, Any]) -> Packing | None:
    """Return how the messages of a replay with these settings are packed, as the prediction takes it; raise
    InputError if that is unknown."""
    if "packing" not in settings:
        return None
    by = str(settings.get("packing_by"))
    packing = Packing(
        str(settings["packing"]), str(settings.get("packing_cache")), REPLAY_PACKERS.get(by, by)
    )
    packing.check()
    return packing


def stored_profiles(run: Run) -> list[Path]:
    """Return the profiles with which `run` was started; raise InputError if one does not exist any more."""
    paths = [Path(path) for path in run.header["settings"].get("profile", ())]
    missing = next((path for path in paths if not path.is_file()), None)
    if missing is not None:
        raise InputError(
            f"{run.path} was started with the profile {missing}, which does not exist any more; "
            "give its present path with --profile"
        )
    return paths


def replay_of(run: Run, profile: Profile) -> Replay:
    """Return the errors that the models have with `profile` for the exchange replayed in `run`.

    Raises InputError if the run is of another context than the profile, which then does not use it.
    """
    stages, layout = replayed_exchange(run)
    alone = replace(profile, replicates=())
    predictor = Predictor(Pattern.joined(stages), layout)
    if not predictor.levels:
        raise InputError(f"{run.path} replays no message, so models cannot be compared; give other replays")
    mpi = exchange_samples(run.samples())[0].config["mpi"]
    for difference in _context_notes(mpi, run.launches()[-1], profile, set(predictor.levels)):
        raise InputError(f"{run.path}: {difference}; give replays of the profile's context only")
    packing = packing_of(run.header.get("settings") or {})
    predictions = predict_stages(stages, layout, alone, packing=packing)
    compared = _compared(run, predictor, alone, predictions, packing=packing)
    return Replay(predictor.levels[-1], dict((compared.empty or compared).error), run.id)


def better_combination(
    compared: Comparison,
    pattern: Pattern,
    layout: Layout,
    profile: Profile,
    share: str = SHARES[0],
    mixed: str = MIXED[0],
    combine: str = COMBINE[0],
    packing: Packing | None = None,
) -> str:
    """Return a sentence that the models err much less with the other way to combine times inside and between
    nodes; "" if they do not."""
    other = next(name for name in COMBINE if name != combine)
    predictor = Predictor(pattern, layout, mixed=mixed, combine=other)
    if "inter_node" not in predictor.levels or len(predictor.levels) == 1 or compared.empty:
        return ""  # where ranks wait for cores, neither way describes their times
    predictions = {
        model: predictor.predict(profile, model, share=share, packing=packing)
        for model in compared.predicted_s
    }
    errors = compare_times(compared.measured_s, predictions).error
    model, best = (min(of_way, key=of_way.__getitem__) for of_way in (errors, compared.error))
    if errors[model] >= _MUCH_LESS * compared.error[best]:
        return ""
    return (
        f"with --combine {other} the error of {model} is {100 * errors[model]:.1f} %, with --combine "
        f"{combine} that of {best} {100 * compared.error[best]:.1f} %"
    )


def _context_notes(mpi: str, launch: Mapping[str, Any], profile: Profile, levels: set[str]) -> list[str]:
    """Return the differences between the context of `profile` and that of the exchange, for `levels`; a
    profile without an MPI matches any."""
    fitted, needed = profile.context.get("flavour"), levels & profile.levels.keys()
    if fitted is None or mpi == "synthetic" or not needed:
        return []
    notes = []
    if fitted != mpi:
        notes.append(f"the profile was measured with {fitted}, the replay with {mpi}")
    threads, network, srun = (
        [context.get(key) or usual for context in (profile.context, launch)]
        for key, usual in USUAL_CONTEXT.items()
    )
    if threads[0] != threads[1]:
        notes.append(f"the profile was measured with --threads {threads[0]}, the replay with {threads[1]}")
    if "inter_node" in needed and network[0] != network[1]:
        notes.append(f"the profile's network is {network[0]}, the replay's is {network[1]}")
    if srun[0] != srun[1]:
        notes.append(f"the profile was measured with srun {srun[0]}, the replay with srun {srun[1]}")
    return notes
