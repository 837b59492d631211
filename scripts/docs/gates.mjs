// The table of feature gates, from the table by which `--feature-gates` is parsed.
import { currentMinor, gateTable as gates } from '@wheelhouse/kinds';
import { idleReason } from '@wheelhouse/server/testing';
import { code, table } from './markdown.mjs';

const effects = {
  'of other components': 'None: other components act by it.',
  'always on': 'None: always on here.',
  'always off': 'None: always off here.',
};

/** Each gate of the current release, sorted by name. */
export function gateTable() {
  const rows = Object.entries(gates).flatMap(([name, history]) => {
    const entry = history.findLast(({ since }) => since <= currentMinor);
    if (entry === undefined) return [];
    const idle = idleReason(name);
    const settable = entry.locked ? 'locked' : 'settable';
    const since = entry.since === 0 ? '' : `1.${entry.since}`;
    const effect = idle === undefined ? '' : effects[idle];
    return [[code(name), entry.stage, since, entry.default ? 'on' : 'off', settable, effect]];
  });
  rows.sort(([left], [right]) => (left < right ? -1 : 1));
  return table(['Gate', 'Stage', 'Since', 'Default', 'May be set', 'Effect'], rows);
}
