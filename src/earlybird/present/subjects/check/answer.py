"""The verdict on a check, with its explanations and its line of the first screen."""

from earlybird.data.check import MIN_JUDGED, NODE, Check, Division, Group
from earlybird.data.labels import capital, counted, listed_briefly
from earlybird.present.core.parts import Answer
from earlybird.present.core.text import NOTHING

_MAX_HOSTS = 8  # by name in a sentence


def verdict(check: Check) -> str:
    """Return `all 4 nodes and 6 links are alike` or `2 of 4 nodes are to be left out: node1 and node3`."""
    number = len(check.nodes)
    undecided = _is("suspicion", len(check.undecided), "undecided because cores were busy")
    if not check.is_judged and not check.findings:
        return f"{number} nodes and {check.links_text} were measured, not judged"
    if not check.findings:
        alike = f"{check.alike_text} are alike"
        return f"{undecided}; otherwise {alike}" if undecided else alike
    bad = check.bad_hosts()
    which = "all" if len(bad) == number else str(len(bad))
    verb = "is" if len(bad) == 1 else "are"
    text = f"{which} of {number} nodes {verb} to be left out: {listed_briefly(bad, _MAX_HOSTS)}"
    return f"{text}; {undecided}" if undecided else text


def explanations(check: Check) -> list[str]:
    """Return sentences without full stops: groups of nodes, other findings, what was not decided, and
    which nodes may be left out instead of others."""
    groups = _groups(check)
    single = [finding for finding in check.findings if not any(group.contains(finding) for group in groups)]
    sentences = [finding.sentence for finding in (*single, *check.undecided)]
    return [*(group.sentence for group in groups), *sentences, *_ties(check)]


def overview(check: Check) -> list[str]:
    """Return the verdict and what concerns several nodes, as sentences without full stops."""
    return [verdict(check), *(group.sentence for group in _groups(check)), *_ties(check)]


def title(check: Check) -> str:
    """Return `4 nodes, mpich 5.0.2`."""
    return f"{counted(len(check.nodes), 'node')}, {check.mpi}"


def check_answer(check: Check) -> Answer:
    """Return the first finding and its likely cause, or the verdict if there is none."""
    if not check.findings:
        do = "check again when the nodes are idle" if check.undecided else NOTHING
        do = do if check.is_judged else f"check at least {MIN_JUDGED} nodes"
        return Answer(title(check), "", "", f"{capital(verdict(check))}.", do)
    first, *others = check.findings
    more = f" ({counted(len(others), 'more finding')})" if others else ""
    where = first.where if first.kind == NODE else capital(first.where)
    compared = f"{first.against or 'others'} {first.expected_text}"
    sentence = f"{where}: {first.measure} {first.value_text}, {compared}{more}."
    return Answer(title(check), first.value_text, "", sentence, first.cause)


def _groups(check: Check) -> list[Group | Division]:
    return [*check.groups(), *check.divisions()]


def _is(noun: str, number: int, what: str) -> str:
    """Return `2 suspicions are WHAT`; "" for none."""
    return f"{counted(number, noun)} {'is' if number == 1 else 'are'} {what}" if number else ""


def _ties(check: Check) -> list[str]:
    """Return which nodes are left out for bad links, and by which others these may be replaced."""
    return [_tie(chosen, others) for chosen, *others in check.ties()]


def _tie(chosen: list[str], others: list[list[str]]) -> str:
    common = set(chosen).intersection(*others)
    own = [host for host in chosen if host not in common]
    replacements = []
    for hosts in others:
        kept = set(hosts)
        replaced = [host for host in own if host not in kept]
        place = " instead" if replaced == own else f" in the place of {listed_briefly(replaced, _MAX_HOSTS)}"
        new = [host for host in hosts if host not in chosen]
        replacements.append(listed_briefly(new, _MAX_HOSTS) + place)
    # Long lists that are cut may have the same text.
    named = list(dict.fromkeys(replacements))[:2]
    more = len(others) - len(named)
    several = [counted(more, "other choice")] if more else []
    verb = "is" if len(own) == 1 else "are"
    return (
        f"for bad links {listed_briefly(own, _MAX_HOSTS)} {verb} left out; that could be "
        f"{' or '.join(named + several)}, because which of them is at fault is not known"
    )
