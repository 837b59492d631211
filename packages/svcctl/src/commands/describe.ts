import { apiVersionOf, humanDuration, type JsonObject } from '@wheelhouse/machinery';
import type { Command } from '../command.ts';
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
  typesHint,
} from '../selection.ts';
import type { Session } from '../session.ts';

export const describeCommand: Command = {
  name: 'describe',
  completes: 'objects',
  summary: 'Show details of a specific resource or group of resources',
  usage: '(TYPE [NAME | -l label] | TYPE/NAME ... | -f FILENAME)',
  flags: [
    selectorFlag,
    allNamespacesFlag,
    ...manifestFlags,
    chunkSizeFlag,
    { name: 'show-events', type: 'boolean', help: 'Show the events of the objects (default)' },
  ],
  async run(session, args) {
    const texts: string[] = [];
    if (args.length === 0 && !hasManifests(session)) {
      throw new CliError(`You must specify the type of resource to describe. ${typesHint}`);
    }
    const targets = await selectTargets(session, args, { filesMatch: 'file' });
    const failures = await visitEach(session.io, targets, async (target) => {
      for (const object of await fetchTarget(session, target)) {
        const { resource } = target;
        const type = { apiVersion: apiVersionOf(resource), kind: resource.kind };
        texts.push(await describe(session, { ...type, ...object }));
      }
    });
    session.io.out(texts.join('\n\n'));
    if (texts.length === 0 && failures.length === 0) {
      const everywhere = session.flags.boolean('all-namespaces');
      const where = everywhere ? '' : ` in ${session.namespace} namespace.`;
      session.io.err(`No resources found${where}\n`);
    }
    return reportFailures(session.io, failures);
  },
};

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
