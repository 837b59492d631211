import type { JsonObject } from '../../base/json.ts';
import { member, setMember } from '../../base/json.ts';
import type { Command } from '../command.ts';
import { CliError } from '../io.ts';
import { objectAt } from '../objects.ts';
import { outputFlags, reportObject } from '../output.ts';
import { fetchTarget, selectionFlags, selectTargets, targetPath } from '../selection.ts';
import type { Session } from '../session.ts';
import { dryRunOf, dryRunSuffix, writeFlags, writeQuery } from '../writes.ts';

const flags = [
  ...selectionFlags,
  ...writeFlags,
  ...outputFlags,
  { name: 'all', type: 'boolean', help: 'All objects of the types' },
  { name: 'overwrite', type: 'boolean', help: 'Allow to change existing values' },
  { name: 'list', type: 'boolean', help: 'Show them instead of changing any' },
  { name: 'resource-version', type: 'text', help: 'Only if this is the current version' },
] as const;

/** The two commands are one, over two maps of the metadata. */
interface Subject {
  readonly map: 'labels' | 'annotations';
  readonly done: string;
  readonly removed: string;
  readonly unchanged: string;
}

export const labelCommand: Command = {
  name: 'label',
  completes: 'objects',
  summary: 'Update the labels on a resource',
  usage: '(TYPE NAME | -f FILENAME) KEY_1=VAL_1 ... KEY_N- ...',
  flags,
  run: (session, args) =>
    run(session, args, {
      map: 'labels',
      done: 'labeled',
      removed: 'unlabeled',
      unchanged: 'not labeled',
    }),
};

export const annotateCommand: Command = {
  name: 'annotate',
  completes: 'objects',
  summary: 'Update the annotations on a resource',
  usage: '(TYPE NAME | -f FILENAME) KEY_1=VAL_1 ... KEY_N- ...',
  flags,
  run: (session, args) =>
    run(session, args, {
      map: 'annotations',
      done: 'annotated',
      removed: 'annotated',
      unchanged: 'annotated',
    }),
};

interface Changes {
  readonly set: ReadonlyMap<string, string>;
  readonly remove: readonly string[];
}

async function run(session: Session, args: readonly string[], subject: Subject): Promise<number> {
  const isChange = (arg: string) => /^[^=]+=/.test(arg) || /^[^=]+-$/.test(arg);
  // A TYPE stands first, so only what follows it can be a change.
  const from = args.findIndex(
    (arg, at) => (at > 0 || session.flags.has('filename')) && isChange(arg),
  );
  const resources = from < 0 ? args : args.slice(0, from);
  const changes = parseChanges(from < 0 ? [] : args.slice(from));
  const listing = session.flags.boolean('list');
  if (changes.set.size + changes.remove.length === 0 && !listing) {
    throw new CliError(`at least one ${subject.map.slice(0, -1)} update is required`);
  }
  for (const target of await selectTargets(session, resources)) {
    for (const object of await fetchTarget(session, target)) {
      const name = String(objectAt(object, 'metadata')['name']);
      const path = targetPath({ ...target, ...placeOf(object), name });
      if (listing) listPairs(session, objectAt(object, 'metadata', subject.map));
      else await change(session, { object, path, changes, subject });
    }
  }
  return 0;
}

function placeOf(object: JsonObject): { namespace: string } | Record<string, never> {
  const { namespace } = objectAt(object, 'metadata');
  return typeof namespace === 'string' ? { namespace } : {};
}

function parseChanges(args: readonly string[]): Changes {
  const set = new Map<string, string>();
  const remove: string[] = [];
  for (const arg of args) {
    const equals = arg.indexOf('=');
    if (equals > 0) set.set(arg.slice(0, equals), arg.slice(equals + 1));
    else if (arg.endsWith('-')) remove.push(arg.slice(0, -1));
    else throw new CliError(`invalid update ${JSON.stringify(arg)}: expected KEY=VALUE or KEY-`);
  }
  const both = remove.find((key) => set.has(key));
  if (both !== undefined) {
    throw new CliError(
      `can not both modify and remove ${JSON.stringify(both)} in the same command`,
    );
  }
  return { set, remove };
}

function listPairs(session: Session, pairs: JsonObject): void {
  for (const key of Object.keys(pairs).sort()) session.io.out(`${key}=${String(pairs[key])}\n`);
}

async function change(
  session: Session,
  options: { object: JsonObject; path: string; changes: Changes; subject: Subject },
): Promise<void> {
  const { object, path, changes, subject } = options;
  const present = objectAt(object, 'metadata', subject.map);
  const patch: JsonObject = {};
  for (const [key, value] of changes.set) {
    const current = member(present, key);
    if (current === value) continue;
    if (current !== undefined && !session.flags.boolean('overwrite')) {
      throw new CliError(
        `'${key}' already has a value (${String(current)}), and --overwrite is false`,
      );
    }
    setMember(patch, key, value);
  }
  for (const key of changes.remove) {
    if (member(present, key) !== undefined) setMember(patch, key, null);
    else session.io.out(`${subject.map.slice(0, -1)} ${JSON.stringify(key)} not found.\n`);
  }
  const suffix = dryRunSuffix(session);
  if (Object.keys(patch).length === 0) {
    reportObject(session, object, `${subject.unchanged}${suffix}`);
    return;
  }
  const what = changes.set.size === 0 ? subject.removed : subject.done;
  if (dryRunOf(session) === 'client') {
    reportObject(session, object, `${what}${suffix}`);
    return;
  }
  const resourceVersion = session.flags.text('resource-version');
  const { object: written } = await session.client.send({
    method: 'PATCH',
    path,
    query: writeQuery(session, `svcctl-${subject.map === 'labels' ? 'label' : 'annotate'}`),
    contentType: 'application/merge-patch+json',
    body: {
      metadata: {
        [subject.map]: patch,
        ...(resourceVersion === undefined ? {} : { resourceVersion }),
      },
    },
  });
  reportObject(session, written, `${what}${suffix}`);
}
