import { apiVersionOf, humanDuration, type JsonObject } from '@wheelhouse/machinery';
import type { Command } from '../command.ts';
import { isNotFound } from '../deletion.ts';
import {
  type DescriptionLine,
  describeObject,
  hasEvents,
  relatedDescriber,
  writeDescription,
} from '../describe/description.ts';
import { relatedTo } from '../describe/related.ts';
import { alignTabs } from '../describe/tabs.ts';
import { reportFailures, visitEach } from '../errors.ts';
import { CliError } from '../io.ts';
import { hasManifests, manifestFlags } from '../manifests.ts';
import { nameOf, namespaceOf, textAt } from '../objects.ts';
import { alignLines } from '../output/table.ts';
import {
  allNamespacesFlag,
  chunkSizeFlag,
  fetchTarget,
  listObjects,
  pageLimit,
  selectorFlag,
  selectTargets,
  type Target,
  typesHint,
} from '../selection.ts';
import type { Session } from '../session.ts';

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
    const texts: string[] = [];
    const failures = await visitEach(session.io, targets, async (target) => {
      texts.push(...(await describeTarget(session, target)));
    });
    const [failure, ...others] = failures;
    if (args.length === 2 && others.length === 0 && isNotFound(failure)) {
      return describeByPrefix(session, args, failure);
    }
    session.io.out(texts.join('\n\n'));
    if (texts.length === 0 && failures.length === 0) {
      const everywhere = session.flags.boolean('all-namespaces');
      const where = everywhere ? '' : ` in ${session.namespace} namespace.`;
      session.io.err(`No resources found${where}\n`);
    }
    return reportFailures(session.io, failures);
  },
};

/** Describes the objects of a target. */
async function describeTarget(session: Session, target: Target): Promise<string[]> {
  const type = { apiVersion: apiVersionOf(target.resource), kind: target.resource.kind };
  const texts: string[] = [];
  for (const object of await fetchTarget(session, target)) {
    texts.push(await describe(session, { ...type, ...object }));
  }
  return texts;
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
  const { resource } = target;
  const listed = await fetchTarget(session, target);
  const matches = listed.filter((object) => nameOf(object).startsWith(prefix));
  if (matches.length === 0) throw notFound;
  for (const object of matches) {
    const named = { resource, namespace: namespaceOf(object), name: nameOf(object) };
    const texts = await describeTarget(session, named);
    session.io.out(texts.map((text) => `${text}\n`).join(''));
  }
  return 0;
}

async function describe(session: Session, object: JsonObject): Promise<string> {
  const dialect = await session.dialect();
  const showsEvents = session.flags.boolean('show-events', true) && hasEvents(object, dialect);
  const events = showsEvents ? await eventLines(session, object) : [];
  const describer = relatedDescriber(object, dialect);
  if (describer === undefined) return writeDescription([...describeObject(object), ...events]);
  const lines = await describer(object, await relatedTo(session, object));
  return alignTabs([...lines, ...events.map((cells) => cells.join('\t'))]);
}

async function eventLines(session: Session, object: JsonObject): Promise<DescriptionLine[]> {
  const { resources } = await session.discovery();
  const resource = resources.find(
    (candidate) => candidate.kind === 'Event' && candidate.group === '',
  );
  if (resource === undefined) return [];
  const selector = [
    `involvedObject.name=${nameOf(object)}`,
    `involvedObject.uid=${textAt(object, 'metadata', 'uid')}`,
  ];
  const target = { resource, namespace: namespaceOf(object), name: undefined };
  let events: JsonObject[];
  try {
    events = await listObjects(session.client, target, {
      fieldSelector: selector.join(','),
      limit: pageLimit(session),
    });
  } catch {
    return [];
  }
  if (events.length === 0) return [['Events:', '<none>']];
  const now = session.clock.now();
  const rows = events.map((event) => [
    `  ${textAt(event, 'type')}`,
    textAt(event, 'reason'),
    ageText(event, now),
    textAt(event, 'source', 'component') || textAt(event, 'reportingComponent'),
    textAt(event, 'message'),
  ]);
  const head = ['  Type', 'Reason', 'Age', 'From', 'Message'];
  const rule = head.map((title) => title.replace(/\S/g, '-'));
  const table = alignLines([head, rule, ...rows]);
  return [
    ['Events:'],
    ...table
      .trimEnd()
      .split('\n')
      .map((line): DescriptionLine => [line]),
  ];
}

function ageText(event: JsonObject, now: number): string {
  const [time] = [textAt(event, 'lastTimestamp'), textAt(event, 'eventTime')].filter(Boolean);
  return time === undefined ? '<unknown>' : humanDuration(now - Date.parse(time));
}
