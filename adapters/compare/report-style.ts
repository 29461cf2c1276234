/** The report's whole style. One fixed text: its digest is in the page's content security policy. */
export const REPORT_STYLE = `
:root { color-scheme: light dark; --page: #fbfbfa; --card: #ffffff; --ink: #1c2126; --soft: #55606b; --line: #dcdfe3; --strip: #f0f2f4;
  --a: #1f5fa8; --b: #b3500b; --c: #1a7a4c; --d: #7a3fa0; --bad: #b3261e; --good: #1a7a4c; --warn: #8a5a00; }
@media (prefers-color-scheme: dark) { :root { --page: #14171a; --card: #1c2024; --ink: #e8eaed; --soft: #a5afb9; --line: #353b42; --strip: #262b31;
  --a: #6fb1f5; --b: #f0a05a; --c: #62cf98; --d: #cfa0ee; --bad: #ff8a80; --good: #62cf98; --warn: #f0c05a; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.05rem; font-weight: 600; color: var(--soft); margin: 0 0 .75rem; }
h2 { font-size: 1.15rem; margin: 2.25rem 0 .5rem; }
p, ul { margin: .5rem 0; }
.answer { font-size: 1.45rem; line-height: 1.3; font-weight: 650; margin: 0 0 .75rem; text-wrap: pretty; }
.soft, .note { color: var(--soft); }
.note { font-size: .9rem; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 1rem; }
.scroll { overflow-x: auto; padding: 0; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; font-variant-numeric: tabular-nums; }
th, td { padding: .4rem .75rem; text-align: right; border-bottom: 1px solid var(--line); vertical-align: baseline; }
tbody tr:last-child > * { border-bottom: 0; }
th:first-child { text-align: left; font-weight: 500; }
thead th { font-weight: 650; }
tbody tr.group > * { padding-top: .95rem; }
.unit { color: var(--soft); font-weight: 400; font-size: .85em; }
.kernel-word, .proxy-word, .wall-word { color: var(--good); font-weight: 600; }
.executor-word { color: var(--warn); font-weight: 600; }
.plot { margin: 0; }
.plot svg[role=img] { display: block; width: 100%; overflow: visible; }
.plot text { fill: var(--ink); font: 13px system-ui, sans-serif; paint-order: stroke; stroke: var(--card); stroke-width: 4px; stroke-linejoin: round; }
.plot .tick, .plot .value { fill: var(--soft); }
.plot .name { font-weight: 600; }
.grid { stroke: var(--line); stroke-width: 1; }
.strip { fill: var(--strip); fill-opacity: .6; }
.series-0 { --mark: var(--a); } .series-1 { --mark: var(--b); } .series-2 { --mark: var(--c); } .series-3 { --mark: var(--d); } .series-none { --mark: var(--soft); }
.turn.warm { fill: var(--mark); fill-opacity: .75; stroke: var(--card); stroke-width: 1; }
.turn.cold { fill: var(--card); stroke: var(--mark); stroke-width: 2; }
.turn.failed path { stroke: var(--bad); stroke-width: 2.5; fill: none; }
.p50 { stroke: var(--mark); stroke-width: 3; }
.p95 { stroke: var(--mark); stroke-width: 2; stroke-dasharray: 3 3; }
rect.kernel { fill: var(--a); }
rect.sandbox { fill: var(--b); }
figcaption { display: flex; flex-wrap: wrap; gap: .25rem 1.1rem; margin-top: .6rem; font-size: .85rem; color: var(--soft); }
.glyph { vertical-align: -2px; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1rem; margin: 0; font-size: .92rem; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
code { font: .92em ui-monospace, monospace; overflow-wrap: anywhere; }
th code { white-space: nowrap; }
@media (max-width: 36rem) { main { padding: 1rem .75rem 3rem; } .answer { font-size: 1.2rem; } table { font-size: .84rem; } dl { grid-template-columns: 1fr; gap: 0; } dd { margin-bottom: .5rem; } .card { padding: .75rem; } .scroll { padding: 0; }
  th, td { padding: .35rem .3rem; } th:first-child { padding-left: .5rem; } td:last-child, th:last-child { padding-right: .5rem; }
  th code { font-size: .7rem; } thead th, .executor-word, .kernel-word { font-size: .75rem; } }
@media print { body { background: #fff; } .card { break-inside: avoid; } }
`;
