import type { ApiResource } from '@wheelhouse/client';
import { apiVersionOf, errorText, type JsonObject } from '@wheelhouse/machinery';
import type { Command } from '../command.ts';
import { isNotFound } from '../deletion.ts';
import { descriptionFor } from '../describe/description.ts';
import { relatedTo } from '../describe/related.ts';
import { alignTabs } from '../describe/tabs.ts';
import { reportFailures, visitEach } from '../errors.ts';
import { CliError } from '../io.ts';
import { hasManifests, manifestFlags } from '../manifests.ts';
import { nameOf, namespaceOf, objectAt, textAt } from '../objects.ts';
import {
  allNamespacesFlag,
  chunkSizeFlag,
  fetchTarget,
  listObjects,
  pageLimit,
  selectorFlag,
  selectTargets,
  typesHint,
} from '../selection.ts';
import type { Session } from '../session.ts';
import { lastSeen } from './events.ts';

/**
 * Prints objects with related ones, such as their events. A name that does not exist counts as a
 * prefix.
 */
export const describeCommand: Command = {
  name: 'describe',
  completes: 'objects',
  summary: 'Show details of a specific resource or group of resources',
  usage: '(TYPE [NAME_PREFIX | -l label] | TYPE/NAME ... | -f FILENAME)',
  flags: [
    selectorFlag,
    allNamespacesFlag,
    ...manifestFlags,
    chunkSizeFlag,
    { name: 'show-events', type: 'boolean', help: 'Show the events of the objects (default)' },
  ],
  async run(session, args) {
    if (args.length === 0 && !hasManifests(session)) {
      throw new CliError(`You must specify the type of resource to describe. ${typesHint}`);
    }
    const targets = await selectTargets(session, args, { filesMatch: 'file' });
    const found: { readonly resource: ApiResource; readonly object: JsonObject }[] = [];
    const failures = await visitEach(session.io, targets, async (target) => {
      const resource = await describedAs(session, target.resource);
      const objects = await fetchTarget(session, { ...target, resource });
      for (const object of objects) found.push({ resource, object });
    });
    const [failure, ...others] = failures;
    if (args.length === 2 && others.length === 0 && isNotFound(failure)) {
      return describeByPrefix(session, args, failure);
    }
    let isFirst = true;
    const print = async ({ resource, object }: (typeof found)[number]) => {
      const text = await describe(session, resource, object);
      session.io.out(isFirst ? text : `\n\n${text}`);
      isFirst = false;
    };
    // A failure concerns one object, not the others of its list.
    await visitEach(session.io, found, print, failures);
    if (isFirst && failures.length === 0) {
      const everywhere = session.flags.boolean('all-namespaces');
      const where = everywhere ? '' : ` in ${session.namespace} namespace.`;
      session.io.err(`No resources found${where}\n`);
    }
    // A user who may not read related objects gets one error, not one for each object.
    const distinct = new Map(failures.map((each) => [errorText(each), each]));
    return reportFailures(session.io, [...distinct.values()]);
  },
};

/** The version in which objects are described: autoscaling/v1 lacks most members of its kind. */
async function describedAs(session: Session, resource: ApiResource): Promise<ApiResource> {
  const { group, version, kind } = resource;
  if (group !== 'autoscaling' || version !== 'v1') return resource;
  return (await session.mapper()).byKind('autoscaling/v2', kind) ?? resource;
}

/**
 * Describes the objects whose names begin with the second argument. Resolves with the exit code.
 * Rejects with `notFound`, the failure to read the object of that name, if there are none.
 */
async function describeByPrefix(
  session: Session,
  [type = '', prefix = '']: readonly string[],
  notFound: unknown,
): Promise<number> {
  const [target, ...others] = await selectTargets(session, [type]);
  if (others.length > 0) throw new CliError('you may only specify a single resource type');
  if (target === undefined) throw notFound;
  const resource = await describedAs(session, target.resource);
  const listed = await fetchTarget(session, { ...target, resource });
  const matches = listed.filter((object) => nameOf(object).startsWith(prefix));
  if (matches.length === 0) throw notFound;
  for (const object of matches) session.io.out(`${await describe(session, resource, object)}\n`);
  return 0;
}

async function describe(
  session: Session,
  resource: ApiResource,
  read: JsonObject,
): Promise<string> {
  // Items of lists omit their type.
  const object = { apiVersion: apiVersionOf(resource), kind: resource.kind, ...read };
  const { describer, withEvents } = descriptionFor(object, await session.dialect());
  const lines = await describer(object, await relatedTo(session, object));
  const showsEvents = withEvents && session.flags.boolean('show-events', true);
  return alignTabs([...lines, ...(showsEvents ? await eventLines(session, object) : [])]);
}

/** Describes the events of an object; none if they cannot be listed. */
async function eventLines(session: Session, object: JsonObject): Promise<string[]> {
  const resource = (await session.mapper()).byKind('v1', 'Event');
  if (resource === undefined) return [];
  const target = { resource, namespace: namespaceOf(object), name: undefined };
  const limit = pageLimit(session);
  const lists = (await involvedUids(session, object)).map((uid) => {
    const fieldSelector = `involvedObject.name=${nameOf(object)},involvedObject.uid=${uid}`;
    return listObjects(session.client, target, { fieldSelector, limit }).catch(() => []);
  });
  const events = (await Promise.all(lists)).flat();
  if (events.length === 0) return ['Events:\t<none>'];
  const now = session.clock.now();
  const timeOf = (event: JsonObject) => Date.parse(textAt(event, 'lastTimestamp')) || 0;
  events.sort((left, right) => timeOf(left) - timeOf(right));
  const rows = events.map((event) => [
    `  ${textAt(event, 'type')}`,
    textAt(event, 'reason'),
    lastSeen(event, now),
    textAt(event, 'source', 'component') || textAt(event, 'reportingComponent'),
    textAt(event, 'message').trim(),
  ]);
  return [
    'Events:',
    // The rule of kubectl is longer than the title of the ages.
    '  Type\tReason\tAge\tFrom\tMessage',
    '  ----\t------\t----\t----\t-------',
    ...rows.map((cells) => cells.join('\t')),
  ];
}

/** The UIDs in events of an object: kubelets report those of nodes and static Pods differently. */
async function involvedUids(session: Session, object: JsonObject): Promise<readonly string[]> {
  const uid = textAt(object, 'metadata', 'uid');
  if (object['apiVersion'] !== 'v1') return [uid];
  if (object['kind'] === 'Node') return [uid, nameOf(object)];
  if (object['kind'] !== 'Pod') return [uid];
  const mirror = (await session.dialect()).label('config.mirror');
  return [textAt(objectAt(object, 'metadata', 'annotations'), mirror) || uid];
}
