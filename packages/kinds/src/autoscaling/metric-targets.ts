import type { JsonObject } from '@wheelhouse/machinery';
import { at, textAt } from '../cells.ts';
import type {
  HorizontalPodAutoscaler,
  MetricSpec,
  MetricStatus,
} from '../gen/types/autoscaling/v2.ts';
import { objectAt } from '../rules/fill.ts';
import type { Stored } from '../stored.ts';

const shownMax = 2;
const unknown = '<unknown>';

/** The member that tells about a metric of each type. */
const members: Readonly<Record<string, string>> = {
  ContainerResource: 'containerResource',
  External: 'external',
  Object: 'object',
  Pods: 'pods',
  Resource: 'resource',
};

/** Of each metric what is measured and what is wanted; at most two, then how many more there are. */
export function targetsOf(object: Stored<HorizontalPodAutoscaler>): string {
  const metrics = object.spec?.metrics ?? [];
  if (metrics.length === 0) return '<none>';
  const measured = object.status?.currentMetrics ?? [];
  const parts = metrics.slice(0, shownMax).map((metric, index) => part(metric, measured[index]));
  const more = metrics.length - shownMax;
  return more > 0 ? `${parts.join(', ')} + ${more} more...` : parts.join(', ');
}

function part(metric: Stored<MetricSpec>, measured: Stored<MetricStatus> | undefined): string {
  const type = metric.type ?? '';
  const member = Object.hasOwn(members, type) ? members[type]! : '';
  const wanted = objectAt(metric, member, 'target');
  if (wanted === undefined) return '<unknown type>';
  const current = objectAt(measured, member, 'current');
  if (type === 'Pods') return pair(current, wanted, 'averageValue', { isAlways: true });
  if (type === 'External' || type === 'Object') return valuePart(current, wanted);
  return `${textAt(metric, member, 'name')}: ${resourcePart(current, wanted)}`;
}

/** A value of all, or one for each pod. */
function valuePart(current: JsonObject | undefined, wanted: JsonObject): string {
  return wanted['averageValue'] === undefined
    ? pair(current, wanted, 'value', { isAlways: true })
    : `${pair(current, wanted, 'averageValue', { isAlways: false })} (avg)`;
}

function resourcePart(current: JsonObject | undefined, wanted: JsonObject): string {
  if (wanted['averageValue'] !== undefined) {
    return pair(current, wanted, 'averageValue', { isAlways: true });
  }
  const name = 'averageUtilization';
  const percent = (value: unknown, none: string) => (value === undefined ? none : `${value}%`);
  return `${percent(at(current, name), unknown)}/${percent(wanted[name], '<auto>')}`;
}

/** What is `isAlways` measured has no pointer upstream: none prints as such. */
function pair(
  current: JsonObject | undefined,
  wanted: JsonObject,
  name: string,
  options: { readonly isAlways: boolean },
): string {
  const none = options.isAlways && current !== undefined ? '<nil>' : unknown;
  return `${current?.[name] ?? none}/${wanted[name] ?? '<nil>'}`;
}
