import type { JsonValue } from '@wheelhouse/machinery/browser';
import { type Change, pathText, type ThreeWay } from '../model/changes.ts';
import { printJson } from '../model/yaml.ts';
import { element } from './element.ts';

const changesMax = 200;

/** What one value has that another has not, a line a change. */
export function changeList(changes: readonly Change[], none: string): HTMLElement {
  if (changes.length === 0) return element('p', {}, none);
  const rows = changes.slice(0, changesMax).map((change) => changeRow(change));
  return tableOf(['Field', 'Before', 'After'], rows, changes.length);
}

const byTexts = { mine: 'you', theirs: 'others', both: 'both of you' } as const;

/** What two writers did to one object. */
export function threeWayList(ways: readonly ThreeWay[]): HTMLElement {
  const rows = ways.slice(0, changesMax).map(({ change, by }) => {
    const row = changeRow(change);
    row.prepend(element('td', { class: by }, byTexts[by]));
    return row;
  });
  return tableOf(['Changed by', 'Field', 'Before', 'After'], rows, ways.length);
}

function changeRow({ path, before, after }: Change): HTMLTableRowElement {
  return element(
    'tr',
    {},
    element('td', {}, element('code', {}, pathText(path))),
    element('td', { class: 'before' }, valueText(before)),
    element('td', { class: 'after' }, valueText(after)),
  );
}

function valueText(value: JsonValue | undefined): HTMLElement {
  return value === undefined
    ? element('em', {}, 'not there')
    : element('pre', {}, printJson(value));
}

function tableOf(heads: readonly string[], rows: readonly HTMLElement[], all: number): HTMLElement {
  const left = all - rows.length;
  return element(
    'div',
    { class: 'scroll' },
    element(
      'table',
      { class: 'changes' },
      element(
        'thead',
        {},
        element('tr', {}, ...heads.map((head) => element('th', { scope: 'col' }, head))),
      ),
      element('tbody', {}, ...rows),
    ),
    left > 0 && element('p', {}, `and ${left} more`),
  );
}
