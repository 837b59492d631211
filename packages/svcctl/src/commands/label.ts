import {
  cut,
  type JsonObject,
  labelValue,
  member,
  parseApiVersion,
  setMember,
} from '@wheelhouse/machinery';
import { changeCause, recorded, recordFlag } from '../apply/record.ts';
import {
  dryRunFlag,
  dryRunOf,
  dryRunSuffix,
  localDryRunError,
  localFlag,
  managerFlag,
  resourceVersionFlag,
  writeQuery,
} from '../apply/writes.ts';
import { splitPairs } from '../argument-values.ts';
import type { Command } from '../command.ts';
import { reportFailures, visitEach } from '../errors.ts';
import { CliError, throwFirst } from '../io.ts';
import { hasManifests, loadManifests } from '../manifests.ts';
import { nameOf, objectAt, textAt } from '../objects.ts';
import { compactJson } from '../output/go-json.ts';
import { outputFlags, reportObject } from '../output/output.ts';
import {
  allConflicts,
  allFlag,
  checkSelected,
  fetchTarget,
  selectionFlags,
  selectTargets,
  targetPath,
} from '../selection.ts';
import type { Session } from '../session.ts';

const flags = [
  ...selectionFlags,
  dryRunFlag,
  managerFlag,
  ...outputFlags,
  allFlag,
  { name: 'overwrite', type: 'boolean', help: 'Allow changes to existing values' },
  { name: 'list', type: 'boolean', help: 'List the values instead of changing them' },
  localFlag,
  recordFlag,
  resourceVersionFlag,
] as const;

/** The differences between `label` and `annotate`. */
interface Subject {
  readonly map: 'labels' | 'annotations';
  readonly changed: string;
  readonly removed: string;
  readonly unchanged: string;
  /** The error for existing values without `--overwrite`. */
  readonly overwriteError: (conflicts: readonly string[]) => Error;
  readonly reportsAbsentKeys: boolean;
}

/** Sets and removes labels. Rejects a change of an existing one without `--overwrite`. */
export const labelCommand: Command = {
  name: 'label',
  completes: 'objects',
  summary: 'Update the labels on a resource',
  usage: '(TYPE NAME | -f FILENAME) KEY_1=VAL_1 ... KEY_N- ...',
  flags,
  run: (session, args) =>
    run(session, args, {
      map: 'labels',
      changed: 'labeled',
      removed: 'unlabeled',
      unchanged: 'not labeled',
      overwriteError: (conflicts) => {
        const errors = conflicts.map(
          (conflict) => new CliError(`${conflict}, and --overwrite is false`),
        );
        return errors.length === 1 && errors[0] !== undefined
          ? errors[0]
          : new AggregateError(errors);
      },
      reportsAbsentKeys: true,
    }),
};

/** Sets and removes annotations. Rejects a change of an existing one without `--overwrite`. */
export const annotateCommand: Command = {
  name: 'annotate',
  completes: 'objects',
  summary: 'Update the annotations on a resource',
  usage: '(TYPE NAME | -f FILENAME) KEY_1=VAL_1 ... KEY_N- ...',
  flags,
  run: (session, args) =>
    run(session, args, {
      map: 'annotations',
      changed: 'annotated',
      removed: 'annotated',
      unchanged: 'annotated',
      overwriteError: (conflicts) => {
        const annotations = conflicts.join('; ');
        const found = `found the following declared annotation(s): ${annotations}`;
        return new CliError(`--overwrite is false but ${found}`);
      },
      reportsAbsentKeys: false,
    }),
};

interface Changes {
  readonly set: ReadonlyMap<string, string>;
  readonly remove: readonly string[];
}

async function run(session: Session, args: readonly string[], subject: Subject): Promise<number> {
  const { flags } = session;
  const what = subject.map.slice(0, -1);
  const { words: resources, pairs } = splitPairs(args, what);
  const changes = parseChanges(pairs, subject);
  const listing = flags.boolean('list');
  checkFlags(session, resources, subject);
  if (changes.set.size + changes.remove.length === 0 && !listing) {
    throw new CliError(`at least one ${what} update is required`);
  }
  checkChanges(changes, subject);
  // Standard input counts as several objects.
  const isOnly = (list: readonly unknown[]) =>
    list.length === 1 && !flags.list('filename').includes('-');
  if (flags.boolean('local')) {
    const manifests = await loadManifests(session);
    for (const { object } of manifests) {
      if (listing) {
        listPairs(session, { object, changes, subject, isSingle: isOnly(manifests) });
      } else await changeOne(session, { object, path: '', changes, subject });
    }
    return 0;
  }
  const targets = await selectTargets(session, resources);
  checkSelected(session, targets);
  const isSingle = targets.length === 1 && targets[0]?.name !== undefined;
  if ((flags.text('resource-version') ?? '') !== '' && !isSingle) {
    throw new CliError('--resource-version may only be used with a single resource');
  }
  const failures = await visitEach(session.io, targets, async (target) => {
    for (const object of await fetchTarget(session, target)) {
      const name = String(objectAt(object, 'metadata')['name']);
      const path = targetPath({ ...target, ...namespaceMember(object), name });
      if (listing) {
        listPairs(session, { object, changes, subject, isSingle: isOnly(targets) && isSingle });
      } else await changeOne(session, { object, path, changes, subject });
    }
  });
  return reportFailures(session.io, failures);
}

/** Throws CliError for conflicting flags. */
function checkFlags(session: Session, resources: readonly string[], { map }: Subject): void {
  const { flags } = session;
  const isLocal = flags.boolean('local');
  const stem = map === 'labels' ? 'pod' : 'rsrc';
  const example = `-f ${stem}.yaml or --filename=${stem}.json`;
  throwFirst([
    flags.boolean('list') &&
      flags.text('output') !== undefined &&
      '--list and --output may not be specified together',
    ...allConflicts(session),
    isLocal && dryRunOf(session) === 'server' && localDryRunError,
    isLocal &&
      resources.length > 0 &&
      `can only use local files by ${example} when --local=true is set`,
    isLocal && !hasManifests(session) && `one or more files must be specified as ${example}`,
    resources.length === 0 &&
      !hasManifests(session) &&
      'one or more resources must be specified as <resource> <name> or <resource>/<name>',
  ]);
}

function namespaceMember(object: JsonObject): { namespace: string } | Record<string, never> {
  const { namespace } = objectAt(object, 'metadata');
  return typeof namespace === 'string' ? { namespace } : {};
}

function parseChanges(pairs: readonly string[], { map }: Subject): Changes {
  const set = new Map<string, string>();
  const remove: string[] = [];
  for (const pair of pairs) {
    const [key, value] = cut(pair, '=');
    if (value === undefined) {
      remove.push(pair.slice(0, -1));
      continue;
    }
    if (map === 'labels') checkLabel(pair, value);
    set.set(key, value);
  }
  if (map === 'labels' && remove.some((key) => set.has(key))) {
    throw new CliError('can not both modify and remove a label in the same command');
  }
  return { set, remove };
}

function checkLabel(pair: string, value: string): void {
  if (value.includes('=')) throw new CliError(`invalid label spec: ${pair}`);
  const faults = labelValue(value);
  if (faults.length === 0) return;
  throw new CliError(`invalid label value: ${JSON.stringify(pair)}: ${faults.join(';')}`);
}

function checkChanges({ set, remove }: Changes, { map }: Subject): void {
  const both = remove.filter((key) => set.has(key));
  if (map === 'labels' || both.length === 0) return;
  throw new CliError(
    'can not both modify and remove the following annotation(s) in the same command: ' +
      both.join(', '),
  );
}

/** Changes of the labels or annotations of an object. */
interface ObjectChanges {
  readonly object: JsonObject;
  readonly changes: Changes;
  readonly subject: Subject;
}

/**
 * Prints the labels or annotations that an object would have, indented below its name if there are
 * others.
 */
function listPairs(
  session: Session,
  { isSingle, ...options }: ObjectChanges & { readonly isSingle: boolean },
): void {
  const { io } = session;
  const { object, subject } = options;
  const { map } = subject;
  const present = objectAt(object, 'metadata', map);
  const silent = { ...subject, reportsAbsentKeys: false };
  const patch = createPatch(session, { ...options, subject: silent, present });
  const pairs = applyPatch(present, patch);
  if (!isSingle) {
    const group = parseApiVersion(textAt(object, 'apiVersion'))?.group ?? '';
    io.out(`Listing ${map} for ${textAt(object, 'kind')}.${group}/${nameOf(object)}:\n`);
  }
  for (const key of Object.keys(pairs).sort()) {
    io.out(`${isSingle ? '' : ' '}${key}=${String(pairs[key])}\n`);
  }
}

const unversioned = { resourceVersion: undefined };

/**
 * How a change of metadata is reported. Like kubectl, a change without `--overwrite` removes labels
 * if it makes the object shorter, and one that finds no labels leaves an empty map.
 */
function verbOf(
  session: Session,
  {
    before,
    after,
    subject,
  }: { readonly before: JsonObject; readonly after: JsonObject; readonly subject: Subject },
): string {
  const [old, now] = [compactJson(before), compactJson(after)];
  if (old === now) return subject.unchanged;
  const isShorter = Buffer.byteLength(now) < Buffer.byteLength(old);
  return isShorter && !session.flags.boolean('overwrite') ? subject.removed : subject.changed;
}

async function changeOne(
  session: Session,
  options: ObjectChanges & { readonly path: string },
): Promise<void> {
  const { object, path, changes, subject } = options;
  const present = objectAt(object, 'metadata', subject.map);
  const isLocal = dryRunOf(session) === 'client' || session.flags.boolean('local');
  const reportsAbsentKeys = subject.reportsAbsentKeys && !isLocal;
  const patch = createPatch(session, {
    present,
    changes,
    subject: { ...subject, reportsAbsentKeys },
  });
  const resourceVersion = session.flags.text('resource-version') || undefined;
  const version = resourceVersion === undefined ? {} : { resourceVersion };
  const before = { ...objectAt(object, 'metadata'), ...(resourceVersion && unversioned) };
  const metadata = { ...before, [subject.map]: applyPatch(present, patch), ...version };
  const changed = await recorded(session, { ...object, metadata });
  const verb = verbOf(session, { before, after: objectAt(changed, 'metadata'), subject });
  const what = `${verb}${dryRunSuffix(session)}`;
  if (isLocal) {
    reportObject(session, changed, what);
    return;
  }
  const cause = await changeCause(session);
  const { object: written } = await session.client.send({
    method: 'PATCH',
    path,
    query: writeQuery(session, `svcctl-${subject.map === 'labels' ? 'label' : 'annotate'}`),
    contentType: 'application/merge-patch+json',
    body: {
      metadata: {
        ...(cause === undefined ? {} : { annotations: cause }),
        [subject.map]: subject.map === 'annotations' ? { ...patch, ...cause } : patch,
        ...version,
      },
    },
  });
  reportObject(session, written, what);
}

/**
 * Creates the patch of the labels or annotations, and reports absent keys. Throws for existing
 * values without `--overwrite`.
 */
function createPatch(
  session: Session,
  options: { readonly present: JsonObject; readonly changes: Changes; readonly subject: Subject },
): JsonObject {
  const { present, changes, subject } = options;
  const patch: JsonObject = {};
  const conflicts: string[] = [];
  const overwrites = session.flags.boolean('overwrite');
  for (const key of changes.remove) {
    if (member(present, key) !== undefined) setMember(patch, key, null);
    else if (subject.reportsAbsentKeys) session.io.out(`label ${JSON.stringify(key)} not found.\n`);
  }
  for (const [key, value] of changes.set) {
    const current = member(present, key);
    if (current === value) continue;
    if (current !== undefined && !overwrites) {
      conflicts.push(`'${key}' already has a value (${String(current)})`);
    }
    setMember(patch, key, value);
  }
  if (conflicts.length > 0) throw subject.overwriteError(conflicts);
  return patch;
}

function applyPatch(present: JsonObject, patch: JsonObject): JsonObject {
  const after: JsonObject = { ...present };
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete after[key];
    else if (value !== undefined) setMember(after, key, value);
  }
  return after;
}
