import { goItems, goQuoted, type JsonObject, type JsonValue } from '@wheelhouse/machinery';
import { textAt } from '../cells.ts';
import type { NodeSelectorTerm } from '../gen/types/core/v1.ts';
import type { LabelSelector } from '../gen/types/meta/v1.ts';
import { goStrings, sortedKeys } from '../rules/checks.ts';
import { objectsAt } from '../rules/fill.ts';
import type { Stored } from '../stored.ts';
import { textsAt } from './fields.ts';

/** Values as Go prints them with `%#v`, which is how upstream shows what is more than a scalar. */

/** A map of strings. */
export function goStringMap(map: JsonObject | undefined): string {
  if (map === undefined) return 'map[string]string(nil)';
  const member = (key: string) => `${goQuoted(key)}:${goQuoted(String(map[key]))}`;
  return `map[string]string{${goItems(sortedKeys(map), member)}}`;
}

/** A list of structs, `(nil)` when it is empty. */
export function goStructs<Item>(
  type: string,
  items: readonly Item[],
  print: (item: Item) => string,
): string {
  return items.length === 0 ? `[]${type}(nil)` : `[]${type}{${goItems(items, print)}}`;
}

const goTexts = (object: JsonObject, name: string) =>
  textsAt(object, name).length === 0 ? '[]string(nil)' : goStrings(textsAt(object, name));

const requirement = (type: string) => (one: JsonObject) =>
  `${type}{Key:${goQuoted(textAt(one, 'key'))}, ` +
  `Operator:${goQuoted(textAt(one, 'operator'))}, Values:${goTexts(one, 'values')}}`;

/** A label selector. */
export function goSelector(selector: Stored<LabelSelector> | undefined): string {
  if (selector === undefined) return '"null"';
  const type = 'v1.LabelSelectorRequirement';
  const expressions = selector.matchExpressions ?? [];
  const shown = goStructs(type, expressions, requirement(type));
  const labels = goStringMap(selector.matchLabels);
  return `v1.LabelSelector{MatchLabels:${labels}, MatchExpressions:${shown}}`;
}

/** A term that selects nodes. */
export function goNodeSelectorTerm(term: Stored<NodeSelectorTerm>): string {
  const type = 'core.NodeSelectorRequirement';
  const part = (name: string) => goStructs(type, objectsAt(term, name), requirement(type));
  const [expressions, fields] = [part('matchExpressions'), part('matchFields')];
  return `core.NodeSelectorTerm{MatchExpressions:${expressions}, MatchFields:${fields}}`;
}

/** A number or percentage. */
export function goIntOrString(value: JsonValue | undefined): string {
  const isText = typeof value === 'string';
  const number = isText ? 0 : Number(value ?? 0);
  const text = goQuoted(isText ? value : '');
  return `intstr.IntOrString{Type:${isText ? 1 : 0}, IntVal:${number}, StrVal:${text}}`;
}

/** A quantity, whose text is split into a whole number and a power of ten as Go keeps it. */
export function goQuantity(text: string): string {
  const [, sign = '', whole = '', fraction = '', suffix = ''] =
    /^([+-]?)(\d*)(?:\.(\d*))?(.*)$/.exec(text) ?? [];
  const format = suffix.endsWith('i') ? 'BinarySI' : 'DecimalSI';
  const binary = ['Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'].indexOf(suffix) + 1;
  const power = { n: -9, u: -6, m: -3, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 }[suffix] ?? 0;
  const digits = `${whole}${fraction}`.replace(/^0+(?=\d)/, '');
  const value = BigInt(digits === '' ? 0 : digits) * 1024n ** BigInt(binary);
  const amount = `value:${sign === '-' ? '-' : ''}${value}, scale:${power - fraction.length}`;
  return (
    `resource.Quantity{i:resource.int64Amount{${amount}}, ` +
    `d:resource.infDecAmount{Dec:(*inf.Dec)(nil)}, s:${JSON.stringify(text)}, Format:"${format}"}`
  );
}

/** A strategy of updates without settings of its own. */
export const goStrategy = (type: string, name: string, settings: string): string =>
  `${type}{Type:${goQuoted(name)}, RollingUpdate:(${settings})(nil)}`;
