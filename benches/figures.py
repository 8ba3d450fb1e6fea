"""Figures of a report as files for the book: each with its legend, its colours and nothing that it needs beside it.

    posterior-experiments run thesis_weight_space -o ws
    python3 benches/figures.py ws/report.html docs/src/images weight-space

Every figure of the page becomes `PREFIX-TITLE.svg`; `--titles` takes those whose titles contain one of some words, `--plots 1,6` the first and the sixth plot of each."""
import argparse
import html
import pathlib
import re

ROW = 22
"""Height of a line of a legend."""


def shown(text):
    return html.unescape(re.sub("<[^>]+>", "", text)).strip()


def styles(page):
    """What the page's style says of plots, in its light colours."""
    sheet = re.search(r"<style>(.*?)</style>", page, re.S).group(1)
    light = re.search(r":root\s*{(.*?)}", sheet, re.S).group(1)
    variables = re.sub(r"color-scheme:[^;]*;", "", light)
    body = re.sub(r"@media[^{]*{(?:[^{}]*{[^{}]*})*[^{}]*}", "", sheet)
    rules = re.findall(r"([^{}]+){([^{}]*)}", body)
    kept = [f"{' '.join(s.split())} {{{' '.join(d.split())}}}" for s, d in rules if s.strip().startswith(("svg .", ".h"))]
    font = "font-family: system-ui, sans-serif;"
    return f"svg {{ {' '.join(variables.split())} {font} }} " + " ".join(kept)


def mark(keys, x, y):
    """What stands before the words of a legend."""
    hue = re.search(r"k-(h\d)", keys)
    at = f"M{x} {y - 4}h22"
    if hue:
        return f'<path class="line {hue.group(1)}" d="{at}"/>'
    if "k-band" in keys or "k-column" in keys:
        opacity = 0.17 if "k-band2" in keys else 0.42
        return f'<rect x="{x}" y="{y - 9}" width="22" height="10" fill="var(--model)" opacity="{opacity}"/>'
    if "k-data" in keys or "k-dot " in keys + " ":
        return f'<circle cx="{x + 11}" cy="{y - 4}" r="3.5" fill="var(--{"ink" if "k-data" in keys else "model"})"/>'
    colour = "soft" if "k-ideal" in keys else "sample" if "k-sample" in keys else "ink" if "k-ink" in keys else "model"
    dash = ' stroke-dasharray="5 3"' if "k-ideal" in keys else ' stroke-dasharray="2 3"' if "k-dotted" in keys else ""
    return f'<path d="{at}" fill="none" stroke="var(--{colour})" stroke-width="2"{dash}/>'


def legend(figure, width):
    """The legend as marks and words in lines above the plots, and its height."""
    found = re.search(r'<ul class="legend">(.*?)</ul>', figure, re.S)
    entries = re.findall(r'<li><i class="([^"]*)"></i>(.*?)</li>', found.group(1), re.S) if found else []
    parts, x, y = [], 34.0, 0.0
    for keys, words in entries:
        space = 44 + 8.2 * len(shown(words))
        if x + space > width and x > 34:
            x, y = 34.0, y + ROW
        parts.append(f'{mark(keys, x, y)}<text class="tick" x="{x + 28}" y="{y}">{words}</text>')
        x += space
    return parts, (y + ROW if entries else 0.0)


def thinned(content):
    """Curves without the points that are nearer than a pixel to the last one along both axes: nobody sees them."""

    def thin(path):
        points = [tuple(map(float, pair.split())) for pair in re.split("[ML]", path.group(1)) if pair]
        kept = points[:1]
        for point in points[1:]:
            if max(abs(point[0] - kept[-1][0]), abs(point[1] - kept[-1][1])) >= 1:
                kept.append(point)
        if kept[-1] != points[-1]:
            kept.append(points[-1])
        return 'd="M' + "L".join(f"{x:g} {y:g}" for x, y in kept) + path.group(2) + '"'

    return re.sub(r'd="(M[-\d. ]+(?:L[-\d. ]+){50,})(Z?)"', thin, content)


def alone(figure, style, chosen):
    """The plots of a figure (of which the chosen ones, by their places, if some are), three beside each other or two of four, as a file of their own."""
    plot = r"<svg class=\"plot(?! on-narrow)[^\"]*\"[^>]*viewBox=\"0 0 ([\d.]+) ([\d.]+)\"[^>]*>(.*?)</svg>"
    plots = [(float(w), float(h), content) for w, h, content in re.findall(plot, figure, re.S)]
    if not plots:
        return None
    if wrong := [i for i in chosen if not 1 <= i <= len(plots)]:
        raise SystemExit(f"--plots {wrong[0]}: this figure has {len(plots)} plots")
    plots = [plots[i - 1] for i in chosen] or plots
    beside = 2 if len(plots) == 4 else 3
    rows = [plots[i : i + beside] for i in range(0, len(plots), beside)]
    width = max(sum(w for w, _, _ in row) for row in rows)
    marks, y = legend(figure, width)
    y += 8
    placed = []
    for row in rows:
        x = 0.0
        for w, _, content in row:
            placed.append(f'<g transform="translate({x:g} {y:g})">{thinned(content)}</g>')
            x += w
        y += max(h for _, h, _ in row)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {y:g}" width="{width:g}">'
        f'<style>{style}</style><rect width="{width:g}" height="{y:g}" fill="#ffffff"/>'
        f'<g transform="translate(0 16)">{"".join(marks)}</g>{"".join(placed)}</svg>\n'
    )


def main():
    made = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    made.add_argument("page", type=pathlib.Path)
    made.add_argument("folder", type=pathlib.Path)
    made.add_argument("prefix")
    made.add_argument("--titles", default="", help="parts of titles, separated by |")
    made.add_argument("--plots", default="", help="places of plots in their figure, from 1, with commas between them")
    arguments = made.parse_args()
    page = arguments.page.read_text()
    style = styles(page)
    chosen = [int(place) for place in arguments.plots.split(",") if place]
    wanted = [words for words in arguments.titles.split("|") if words]
    for figure in re.findall(r"<figure.*?</figure>", page, re.S):
        title = shown(re.search(r"<h3>(.*?)</h3>", figure, re.S).group(1))
        if wanted and not any(words in title for words in wanted):
            continue
        made = alone(figure, style, chosen)
        if made:
            name = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
            path = arguments.folder / f"{arguments.prefix}-{name}.svg"
            path.write_text(made)
            print(path, len(made))


if __name__ == "__main__":
    main()
