import { apiVersionOf, humanDuration, type JsonObject } from '@wheelhouse/machinery';
import type { Command } from '../command.ts';
import { CliError } from '../io.ts';
import { nameOf, namespaceOf, textAt } from '../objects.ts';
import {
  type DescriptionLine,
  describeObject,
  hasEvents,
  writeDescription,
} from '../output/description.ts';
import { alignLines } from '../output/table.ts';
import {
  chunkSizeFlag,
  fetchTarget,
  listObjects,
  selectionFlags,
  selectTargets,
} from '../selection.ts';
import type { Session } from '../session.ts';

export const describeCommand: Command = {
  name: 'describe',
  completes: 'objects',
  summary: 'Show details of a specific resource or group of resources',
  usage: '(TYPE [NAME | -l label] | TYPE/NAME ... | -f FILENAME)',
  flags: [
    ...selectionFlags,
    chunkSizeFlag,
    { name: 'show-events', type: 'boolean', help: 'Show the events of the objects (default)' },
  ],
  async run(session, args) {
    const texts: string[] = [];
    for (const target of await selectTargets(session, args)) {
      for (const object of await fetchTarget(session, target)) {
        const { resource } = target;
        const type = { apiVersion: apiVersionOf(resource), kind: resource.kind };
        const whole = { ...type, ...object };
        const showsEvents = session.flags.boolean('show-events', true) && hasEvents(whole);
        const events = showsEvents ? await eventLines(session, whole) : [];
        texts.push(writeDescription([...describeObject(whole), ...events]));
      }
    }
    if (texts.length === 0) throw new CliError('No resources found');
    session.io.out(texts.join('\n\n'));
    return 0;
  },
};

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
    events = await listObjects(session.client, target, { fieldSelector: selector.join(',') });
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
