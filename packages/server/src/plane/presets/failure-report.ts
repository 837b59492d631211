import { isObject, textOf } from '@wheelhouse/machinery';
import { ownClientOf } from '../control-plane.ts';
import type { ControlPlane, ManifestObject, RecordedRequest } from '../types.ts';

const writesMax = 20;
const eventsMax = 20;
const writingVerbs = ['create', 'update', 'patch', 'delete', 'deletecollection'];

/**
 * Describes a failed test: its last writes, and the Events about the objects it wrote or about its
 * own namespace. Faults of the test neither disturb it nor does it record requests.
 * @param test.since the last request ahead of the test
 */
export async function failureReport(
  plane: ControlPlane,
  test: { readonly since: number; readonly namespace: string },
): Promise<string> {
  const writes = plane.recorded({ since: test.since, verb: writingVerbs });
  const involved = new Set(
    writes.map(({ kind, namespace, name }) => `${kind} ${namespace}/${name}`),
  );
  const isInvolved = (event: ManifestObject) =>
    involved.has(subjectOf(event)) ||
    (test.namespace !== 'default' && event.metadata?.namespace === test.namespace);
  const events = (await eventsOf(plane)).filter(isInvolved);
  return [
    `The last writes of the test (seed of faults ${plane.faults.seed}):`,
    ...shown(writes.slice(-writesMax).map(writeLine)),
    'Events about the objects involved:',
    ...shown(events.slice(-eventsMax).map(eventLine)),
    '',
  ].join('\n');
}

function shown(lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? ['  none'] : lines.map((line) => `  ${line}`);
}

async function eventsOf(plane: ControlPlane): Promise<readonly ManifestObject[]> {
  try {
    return await ownClientOf(plane).list({ apiVersion: 'v1', kind: 'Event' });
  } catch {
    // A plane that the test has stopped has none to show.
    return [];
  }
}

function writeLine(request: RecordedRequest): string {
  const { timeMs, user, verb, kind, namespace, name, subresource, status, fault } = request;
  const time = new Date(timeMs).toISOString().slice(11, 23);
  const place = [namespace, name].filter((part) => part !== '').join('/');
  const what = `${kind}${subresource === '' ? '' : `/${subresource}`} ${place}`;
  const cause = fault === undefined ? '' : ` (fault: ${fault})`;
  return `${time} ${user} ${verb} ${what} ${status ?? 'unanswered'}${cause}`;
}

function subjectOf({ involvedObject }: ManifestObject): string {
  if (!isObject(involvedObject)) return '';
  const { kind, namespace, name } = involvedObject;
  return `${textOf(kind)} ${textOf(namespace)}/${textOf(name)}`;
}

function eventLine(event: ManifestObject): string {
  const { type, reason, message } = event;
  return `${String(type ?? '')} ${String(reason ?? '')} ${subjectOf(event)}: ${String(message ?? '')}`;
}
