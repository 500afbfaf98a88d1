"""Builds the documentation site into build/site: the pages of docs/, and a reference made from the code.

Every warning of the build, every link that leads nowhere and everything that would be loaded from elsewhere
is an error. Nothing is fetched; the site can be read from the folder.
"""

from __future__ import annotations

import ast
import inspect
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).parents[1]
SOURCE, SITE = ROOT / "build" / "site-source", ROOT / "build" / "site"
BESIDE = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE", "examples")
QUOTED = re.compile(r"(: |-> )'([^']*)'")
"""Types that are kept as texts."""
WIDE = 90
LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src"}
"""What a browser loads by itself."""


def lay_out() -> None:
    """The pages as the repository has them, so that their links are right."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    shutil.rmtree(SITE, ignore_errors=True)
    shutil.copytree(ROOT / "docs", SOURCE / "docs")
    (SOURCE / "docs" / "conf.py").rename(SOURCE / "conf.py")
    for name in BESIDE:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, SOURCE / name)
        else:
            shutil.copy(ROOT / name, SOURCE / name)
    reference = SOURCE / "docs" / "reference"
    reference.mkdir()
    for name, page in (("python", python), ("settings", settings), ("commands", commands)):
        (reference / f"{name}.md").write_text(page())


def settings() -> str:
    """Every setting with its default, and the comment above it."""
    from anabranch.settings import Settings

    text = (ROOT / "src" / "anabranch" / "settings.py").read_text()
    tree = next(
        one
        for one in ast.parse(text).body
        if isinstance(one, ast.ClassDef) and one.name == "Settings"
    )
    lines = text.splitlines()
    rows = [
        "# Settings",
        "",
        "Made from `settings.py`.",
        "",
        "| setting | type | default | |",
        "|---|---|---|---|",
    ]
    for field in tree.body:
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        comment: list[str] = []
        for line in reversed(lines[: field.lineno - 1]):
            if not line.strip().startswith("#"):
                break
            comment.insert(0, line.strip("# ").strip())
        about = " ".join(comment)
        default = repr(getattr(Settings(), field.target.id))
        kind = ast.unparse(field.annotation).replace("|", "or")
        rows.append(f"| `{field.target.id}` | {kind} | `{default}` | {about.replace('|', '/')} |")
    return "\n".join(rows) + "\n"


def python() -> str:
    """The public names, with their signatures and docstrings."""
    import anabranch
    from anabranch.engine.run import Run

    parts = ["# Python", "Made from the code. `Session.start` gives a `Run`."]
    for name in [*sorted(anabranch.__all__), "Run"]:
        one = Run if name == "Run" else getattr(anabranch, name)
        parts.append(described(name, one, "##"))
        if not inspect.isclass(one) or name in ("AnabranchError", "Settings"):
            continue
        for member in sorted(vars_of(one)):
            parts.append(described(f"{name}.{member}", getattr(one, member), "###"))
    return "\n\n".join(parts) + "\n"


def vars_of(kind: type) -> set[str]:
    """The public members of a class that are ours."""
    return {
        name
        for base in kind.__mro__
        if base.__module__.startswith("anabranch")
        for name, value in vars(base).items()
        if not name.startswith("_")
        and (callable(value) or isinstance(value, (property, classmethod)))
    }


def described(name: str, one: Any, level: str) -> str:
    """A name with how it is called and what its docstring says; examples as code."""
    called = called_as(name, one)
    parts = [f"{level} {name}", f"```python\n{called}\n```"]
    for paragraph in (inspect.getdoc(one) or "").split("\n\n"):
        text = inspect.cleandoc(paragraph)
        parts.append(f"```pycon\n{text}\n```" if ">>>" in text else text)
    return "\n\n".join(part for part in parts if part)


def called_as(name: str, one: Any) -> str:
    """How it is called; what is long has a line for each argument."""
    try:
        found = inspect.signature(one)
    except (TypeError, ValueError):
        return name
    whole = f"{name}{found}"
    if len(whole) > WIDE:
        given = [str(found.replace(parameters=[one])) for one in found.parameters.values()]
        keys = [one.split(" -> ")[0][1:-1].removeprefix("*, ") for one in given]
        star = [one.kind is one.KEYWORD_ONLY for one in found.parameters.values()]
        if True in star:
            keys.insert(star.index(True), "*")
        arrow = whole.rpartition(") -> ")
        whole = f"{name}(\n" + "".join(f"    {one},\n" for one in keys) + ")"
        whole += f" -> {arrow[2]}" if arrow[1] else ""
    return QUOTED.sub(r"\1\2", whole)


def commands() -> str:
    """The help of every command."""
    import typer
    from typer.testing import CliRunner

    from anabranch.cli import app

    names = [[], *([name] for name in sorted(typer.main.get_command(app).commands))]  # type: ignore[attr-defined]
    parts = ["# Commands", "What `--help` says."]
    for name in names:
        told = CliRunner().invoke(app, [*name, "--help"], env={"COLUMNS": "100"})
        title = " ".join(["anabranch", *name])
        parts.append(f"## {title}\n\n```text\n{told.stdout.strip()}\n```")
    return "\n\n".join(parts) + "\n"


class Page(HTMLParser):
    """The links of a page, what it loads, and the places that links may lead to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.places: set[str] = set()
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        if known.get("id"):
            self.places.add(str(known["id"]))
        if tag == "a" and known.get("href"):
            self.links.append(str(known["href"]))
        if tag in LOADED and known.get(LOADED[tag]):
            self.loads.append(str(known[LOADED[tag]]))


def wrong_links(site: Path) -> list[str]:
    """Links that lead nowhere, and what would be loaded from elsewhere."""
    pages = {path.resolve(): Page(path) for path in site.rglob("*.html")}
    found = []
    for path, page in pages.items():
        at = path.relative_to(site.resolve())
        found += [f"{at} loads {one}" for one in page.loads if urlsplit(one).netloc]
        for link in [*page.links, *page.loads]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                found.append(f"{at} links to {link}")
            elif parts.fragment and target in pages:
                places = pages[target].places
                if unquote(parts.fragment) not in places:
                    found.append(f"{at} links to {link}: there is no such place")
    return found


def main() -> int:
    lay_out()
    build = ["-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", str(SOURCE), str(SITE)]
    if subprocess.run([sys.executable, *build], check=False).returncode:
        return 1
    (SITE / "index.html").write_text(
        '<!doctype html><meta charset="utf-8"><title>Anabranch</title>'
        '<meta http-equiv="refresh" content="0; url=docs/index.html">'
        '<a href="docs/index.html">Anabranch</a>\n'
    )
    wrong = wrong_links(SITE)
    for line in sorted(set(wrong)):
        print(line, file=sys.stderr)
    if wrong:
        return 1
    print(f"The site: {SITE / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
