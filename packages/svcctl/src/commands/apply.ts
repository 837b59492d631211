import { ApiError, type ApiResource, parseYaml, toYaml } from '@wheelhouse/client';
import { apiVersionOf, isObject, type JsonObject, type JsonValue } from '@wheelhouse/machinery';
import { migrateToServerSide } from '../apply/apply-migration.ts';
import { applyByAnnotation, checkNamed } from '../apply/client-side-apply.ts';
import { editInEditor, editSubject } from '../apply/edit-session.ts';
import {
  dryRunOf,
  dryRunSuffix,
  lastAppliedName,
  notedText,
  objectPath,
  placed,
  writeFlags,
  writeQuery,
} from '../apply/writes.ts';
import type { Command } from '../command.ts';
import { deleteOptions, deletionFlags } from '../delete-options.ts';
import type { FlagSpec } from '../flags.ts';
import { CliError } from '../io.ts';
import { eachManifest, type Manifest, manifestFlags } from '../manifests.ts';
import { listAt, nameOf, namespaceOf, objectLabel, textAt, valueAt } from '../objects.ts';
import { printJson } from '../output/go-json.ts';
import { outputFlags, printerOf, printList, reportObject } from '../output/output.ts';
import {
  fetchTarget,
  listObjects,
  resourceOfObject,
  selectionFlags,
  selectTargets,
  targetPath,
} from '../selection.ts';
import { serverDialect } from '../server-dialect.ts';
import type { Session } from '../session.ts';

const outputFlag: FlagSpec = { name: 'output', short: 'o', type: 'text', help: 'json or yaml' };

const viewCommand: Command = {
  name: 'view-last-applied',
  completes: 'objects',
  summary: 'View the last applied configuration, from the annotation',
  usage: '(TYPE [NAME | -l label] | TYPE/NAME | -f FILENAME)',
  flags: [
    ...selectionFlags,
    outputFlag,
    { name: 'all', type: 'boolean', help: 'All objects of the type' },
  ],
  async run(session, args) {
    const output = session.flags.text('output') ?? 'yaml';
    if (output !== 'json' && output !== 'yaml') {
      throw new CliError(
        `Unexpected -o output mode: ${output}, the flag 'output' must be one of yaml|json\n` +
          "See 'svcctl apply view-last-applied -h' for help and examples",
      );
    }
    const annotation = await lastAppliedName(session);
    for (const target of await selectTargets(session, args)) {
      for (const object of await fetchTarget(session, target)) {
        const text = textAt(object, 'metadata', 'annotations', annotation);
        if (text === '' && session.flags.has('filename')) {
          throw new CliError(
            `no last-applied-configuration annotation found on resource: ${nameOf(object)}`,
          );
        }
        if (text === '') continue;
        const noted = await parseYaml(text);
        session.io.out(output === 'json' ? `${printJson(noted, '  ')}\n` : toYaml(noted));
      }
    }
    return 0;
  },
};

const setCommand: Command = {
  name: 'set-last-applied',
  summary: 'Save a file as the last applied configuration, changing nothing else',
  usage: '-f FILENAME',
  flags: [
    ...manifestFlags,
    ...writeFlags,
    ...outputFlags,
    {
      name: 'create-annotation',
      type: 'boolean',
      help: 'Create the annotation if the object has none',
    },
  ],
  run: (session) =>
    eachManifest(session, 'set-last-applied', ({ object }) => setLastApplied(session, object)),
};

async function setLastApplied(session: Session, object: JsonObject): Promise<void> {
  const annotation = await lastAppliedName(session);
  const resource = await resourceOfObject(session, object);
  const path = objectPath(session, { resource, object });
  const live = await session.client.get(path);
  const before = textAt(live, 'metadata', 'annotations', annotation);
  if (before === '' && !session.flags.boolean('create-annotation')) {
    throw new CliError(
      `no last-applied-configuration annotation found on resource: ${nameOf(object)}, ` +
        'to create the annotation, run the command with --create-annotation',
    );
  }
  const value = notedText(placed(session, { resource, object }));
  // A note that says the same in other words is written anew.
  if (before.trimEnd() === value.trimEnd()) {
    session.io.out(`set-last-applied ${nameOf(object)}: no changes required.\n`);
    return;
  }
  if (dryRunOf(session) === 'client') {
    reportObject(session, live, `configured${dryRunSuffix(session)}`);
    return;
  }
  const { object: written } = await session.client.send({
    method: 'PATCH',
    path,
    // Who writes is what the server makes of the client's name, as with kubectl.
    query: { ...writeQuery(session), fieldManager: session.flags.text('field-manager') },
    contentType: 'application/merge-patch+json',
    body: { metadata: { annotations: { [annotation]: value } } },
  });
  reportObject(session, written, `configured${dryRunSuffix(session)}`);
}

const heading = `# Please edit the 'last-applied-configuration' annotations below.
# Lines beginning with a '#' will be ignored, and an empty file will abort the edit.
#
`;

const editCommand: Command = {
  name: 'edit-last-applied',
  completes: 'objects',
  summary: 'Edit the last applied configuration only',
  usage: '(TYPE NAME | TYPE/NAME | -f FILENAME)',
  flags: [...selectionFlags, ...writeFlags, ...outputFlags],
  async run(session, args) {
    const annotation = await lastAppliedName(session);
    let exitCode = 0;
    let found = false;
    for (const target of await selectTargets(session, args)) {
      for (const object of await fetchTarget(session, target)) {
        const text = textAt(object, 'metadata', 'annotations', annotation);
        if (text === '') continue;
        found = true;
        const path = targetPath({
          ...target,
          namespace: namespaceOf(object),
          name: nameOf(object),
        });
        const noted = await parseYaml(text);
        const subject = editSubject(target.resource, nameOf(object));
        const code = await editNote(session, { path, annotation, noted, subject });
        exitCode = Math.max(exitCode, code);
      }
    }
    if (found) return exitCode;
    throw new CliError(
      'no last-applied-configuration annotation found on resources, to create the annotation, ' +
        'use command `svcctl apply set-last-applied --create-annotation`',
    );
  },
};

function editNote(
  session: Session,
  of: {
    readonly path: string;
    readonly annotation: string;
    readonly noted: JsonValue;
    readonly subject: string;
  },
): Promise<number> {
  const { path, annotation, noted, subject } = of;
  return editInEditor(session, {
    heading,
    subject,
    shown: noted,
    apply: async (edited) => {
      if (!isObject(edited)) throw new CliError('the edited file is not an object');
      await session.client.send({
        method: 'PATCH',
        path,
        query: writeQuery(session, 'svcctl-client-side-apply'),
        contentType: 'application/merge-patch+json',
        body: { metadata: { annotations: { [annotation]: notedText(edited) } } },
      });
      reportObject(session, edited, `edited${dryRunSuffix(session)}`);
      return { type: 'done' };
    },
  });
}

/** The sub-commands of `apply` about the annotation that a client-side apply goes by. */
const lastAppliedCommands: readonly Command[] = [viewCommand, setCommand, editCommand];

/** Kinds that are pruned when none are named, by stem of group and kind, as kubectl has them. */
const usualKinds: readonly (readonly [stem: string, kind: string])[] = [
  ['', 'ConfigMap'],
  ['', 'Endpoints'],
  ['', 'PersistentVolumeClaim'],
  ['', 'Pod'],
  ['', 'ReplicationController'],
  ['', 'Secret'],
  ['', 'Service'],
  ['batch', 'Job'],
  ['batch', 'CronJob'],
  ['networking', 'Ingress'],
  ['apps', 'DaemonSet'],
  ['apps', 'Deployment'],
  ['apps', 'ReplicaSet'],
  ['apps', 'StatefulSet'],
  ['', 'Namespace'],
  ['', 'PersistentVolume'],
];

/** An object that an earlier apply made and this one no longer names. */
interface Leftover {
  readonly resource: ApiResource;
  readonly object: JsonObject;
  readonly uid: string;
}

/**
 * Finds what an earlier apply of the same manager made and this one no longer names: objects of the
 * kinds in question that match the selector and carry the manager's mark.
 */
export async function* leftovers(
  session: Session,
  options: {
    /** What this apply names, as the server has it. */
    readonly applied: readonly JsonObject[];
    /** Absent: the usual ones. */
    readonly kinds: readonly ApiResource[] | undefined;
  },
): AsyncGenerator<Leftover> {
  const manager = managerOf(session);
  const kept = new Set(options.applied.map((object) => textAt(object, 'metadata', 'uid')));
  const flagged = session.flags.text('namespace') ?? '';
  const visited = [flagged, ...options.applied.map(namespaceOf)].filter((one) => one !== '');
  const namespaces = new Set(visited);
  const kinds = options.kinds ?? (await usualResources(session));
  const inOrder = [...kinds].sort(
    (one, other) => Number(other.namespaced) - Number(one.namespaced),
  );
  for (const resource of inOrder) {
    for (const namespace of resource.namespaced ? namespaces : ['']) {
      const target = { resource, namespace, name: undefined };
      const query = { labelSelector: session.flags.text('selector') };
      for (const object of await listObjects(session.client, target, query)) {
        const uid = textAt(object, 'metadata', 'uid');
        if (kept.has(uid) || !wasApplied(object, manager)) continue;
        if (valueAt(object, 'metadata', 'deletionTimestamp') !== undefined) continue;
        yield { resource, object, uid };
      }
    }
  }
}

async function usualResources(session: Session): Promise<readonly ApiResource[]> {
  const { resources } = await session.discovery();
  const dialect = await serverDialect(session);
  return usualKinds.flatMap(([stem, kind]) => {
    const group = stem === '' ? '' : dialect.group(stem);
    const found = resources.find(
      (one) => one.preferred && one.group === group && one.kind === kind,
    );
    return found === undefined ? [] : [found];
  });
}

/** The kinds that `--prune-allowlist` names; undefined without it. Throws CliError. */
export async function allowedKinds(session: Session): Promise<readonly ApiResource[] | undefined> {
  const allowed = session.flags.list('prune-allowlist').flatMap((one) => one.split(','));
  if (allowed.length === 0) return undefined;
  const mapper = await session.mapper();
  return allowed.map((one) => {
    const [stem = '', version = '', kind = '', ...more] = one.split('/');
    if (kind === '' || more.length > 0) {
      throw new CliError(
        `invalid GroupVersionKind format: ${one}, please follow <group/version/kind>`,
      );
    }
    const group = stem === 'core' ? '' : stem;
    const apiVersion = apiVersionOf({ group, version });
    const found = mapper.byKind(apiVersion, kind);
    if (found !== undefined) return found;
    throw new CliError(
      `no matches for kind ${JSON.stringify(kind)} in version ${JSON.stringify(apiVersion)}`,
    );
  });
}

function wasApplied(object: JsonObject, manager: string): boolean {
  const entries = listAt(object, 'metadata', 'managedFields');
  const ownApply = entries.some(
    (entry) => entry.manager === manager && entry.operation === 'Apply',
  );
  const annotations = valueAt(object, 'metadata', 'annotations') ?? {};
  return (
    ownApply || Object.keys(annotations).some((key) => key.endsWith('/last-applied-configuration'))
  );
}

async function pruneOne(session: Session, { resource, object, uid }: Leftover): Promise<void> {
  const target = { resource, namespace: namespaceOf(object), name: nameOf(object) };
  const dryRun = dryRunOf(session);
  if (dryRun !== 'client') {
    try {
      await session.client.send({
        method: 'DELETE',
        path: targetPath(target),
        body: { ...deleteOptions(session), preconditions: { uid } },
      });
    } catch (error) {
      if (error instanceof ApiError && error.code === 404) return;
      throw error;
    }
  }
  session.io.out(`${objectLabel(object)} pruned${dryRunSuffix(session)}\n`);
}

/** Flags of what applies, or tells what that would come to. */
export const applyFlags: readonly FlagSpec[] = [
  ...manifestFlags,
  ...writeFlags,
  { name: 'server-side', type: 'boolean', help: 'Apply on the server (default)' },
  { name: 'client-side', type: 'boolean', help: 'Apply by the last-applied annotation' },
  { name: 'force-conflicts', type: 'boolean', help: 'Take over fields that other managers own' },
];

/** Flags of which objects are applied and pruned. */
export const pruneFlags: readonly FlagSpec[] = [
  {
    name: 'selector',
    short: 'l',
    type: 'text',
    help: 'Only objects that this label selector matches',
  },
  { name: 'prune-allowlist', type: 'list', help: 'Kinds to prune: GROUP/VERSION/KIND' },
];

export const applyCommand: Command = {
  name: 'apply',
  summary: 'Apply a configuration to a resource by file name or stdin',
  usage: '-f FILENAME',
  flags: [
    ...applyFlags,
    ...outputFlags,
    ...deletionFlags,
    { name: 'force', type: 'boolean', help: 'Delete and create objects that cannot be patched' },
    {
      name: 'overwrite',
      type: 'boolean',
      help: 'Overwrite what others have changed since (default)',
    },
    { name: 'subresource', type: 'text', help: 'Sub-resource to apply: status, scale' },
    ...pruneFlags,
    {
      name: 'prune',
      type: 'boolean',
      help: 'Delete applied objects that are missing from the input',
    },
    { name: 'all', type: 'boolean', help: 'Prune without a selector' },
  ],
  subcommands: lastAppliedCommands,
  async run(session, args) {
    checkFlags(session, args);
    const prunes = session.flags.boolean('prune');
    const kinds = prunes ? await allowedKinds(session) : undefined;
    const applied: JsonObject[] = [];
    const exitCode = await eachManifest(session, 'apply', async (manifest) => {
      applied.push(await applyOne(session, manifest));
    });
    if (exitCode !== 0) return exitCode;
    printAll(session, applied);
    // What is no longer given is known only when all that is given is there.
    if (!prunes) return 0;
    for await (const leftover of leftovers(session, { applied, kinds })) {
      await pruneOne(session, leftover);
    }
    return 0;
  },
};

/** Throws CliError for flags that contradict each other. */
function checkFlags(session: Session, args: readonly string[]): void {
  const { flags } = session;
  const problem = [
    args.length > 0 && `Unexpected args: [${args.join(' ')}]\n${seeHelp}`,
    flags.boolean('force-conflicts') &&
      isClientSide(session) &&
      '--force-conflicts only works with --server-side',
    dryRunOf(session) === 'client' &&
      !isClientSide(session) &&
      "--dry-run=client doesn't work with --server-side (did you mean --dry-run=server instead?)",
    (flags.text('subresource') ?? '') !== '' &&
      isClientSide(session) &&
      '--subresource can only be specified for --server-side',
    flags.boolean('force') && !isClientSide(session) && '--force cannot be used with --server-side',
    flags.boolean('force') &&
      dryRunOf(session) === 'server' &&
      '--dry-run=server cannot be used with --force',
    flags.boolean('all') &&
      flags.has('selector') &&
      'cannot set --all and --selector at the same time',
    flags.boolean('prune') &&
      !flags.has('selector') &&
      !flags.boolean('all') &&
      'all resources selected for prune without explicitly passing --all. ' +
        'To prune all resources, pass the --all flag. ' +
        'If you did not mean to prune all resources, specify a label selector',
  ].find((one) => one !== false);
  if (problem !== undefined) throw new CliError(problem);
}

const seeHelp = "See 'svcctl apply -h' for help and examples";

/** Whether the flags ask for an apply by the annotation. */
export const isClientSide = (session: Session): boolean =>
  session.flags.boolean('client-side') || !session.flags.boolean('server-side', true);

/** The name of the field manager that applies. */
export function managerOf(session: Session): string {
  const otherwise = isClientSide(session) ? 'svcctl-client-side-apply' : 'svcctl';
  return session.flags.text('field-manager') ?? otherwise;
}

/** Applies one object and tells of it, unless all are printed in the end. */
async function applyOne(session: Session, manifest: Manifest): Promise<JsonObject> {
  const { object, done } = isClientSide(session)
    ? await applyByAnnotation(session, manifest, managerOf(session))
    : await applyAtServer(session, manifest);
  if (!printsObjects(session)) reportObject(session, object, `${done}${dryRunSuffix(session)}`);
  return object;
}

async function applyAtServer(session: Session, { object }: Manifest) {
  checkNamed(object);
  try {
    const again = () => applyOnServer(session, { object, dryRun: false });
    const applied = { object: await again(), manager: managerOf(session), again };
    const path = objectPath(session, { resource: await resourceOfObject(session, object), object });
    const migrated = await migrateToServerSide(session, { ...applied, path });
    return { object: migrated, done: 'serverside-applied' };
  } catch (error) {
    throw conflictReport(error) ?? error;
  }
}

const printsObjects = (session: Session): boolean => {
  const format = session.flags.text('output') ?? '';
  return format !== '' && format !== 'name';
};

/** Prints what was applied as one object, or as one list of several. */
function printAll(session: Session, applied: readonly JsonObject[]): void {
  const [only] = applied;
  if (!printsObjects(session) || only === undefined) return;
  if (applied.length > 1) printList(session, applied);
  else session.io.out(printerOf(session)?.(only) ?? '');
}

/** Has the server apply an object. Rejects with ApiError. */
export async function applyOnServer(
  session: Session,
  { object, dryRun }: { object: JsonObject; dryRun: boolean },
): Promise<JsonObject> {
  const resource = await resourceOfObject(session, object);
  const answer = await session.client.send({
    method: 'PATCH',
    path: objectPath(session, { resource, object, ...subresourceOf(session) }),
    query: {
      ...writeQuery(session, managerOf(session)),
      force: String(session.flags.boolean('force-conflicts')),
      ...(dryRun ? { dryRun: 'All' } : {}),
    },
    contentType: 'application/apply-patch+yaml',
    body: placed(session, { resource, object }),
  });
  return answer.object;
}

function subresourceOf({ flags }: Session): { readonly subresource?: string } {
  const subresource = flags.text('subresource') ?? '';
  return subresource === '' ? {} : { subresource };
}

/** Tells who owns the fields an apply was refused for; undefined for other failures. */
function conflictReport(error: unknown): CliError | undefined {
  if (!(error instanceof ApiError) || error.code !== 409) return undefined;
  const causes = (error.details?.causes ?? []).filter(
    (cause) => cause.reason === 'FieldManagerConflict',
  );
  if (causes.length === 0) return undefined;
  const byOwner = new Map<string, string[]>();
  for (const { message = '', field = '' } of causes) {
    byOwner.set(message, [...(byOwner.get(message) ?? []), field]);
  }
  const owners = [...byOwner].map(
    ([owner, fields]) => `${owner}:\n${fields.map((field) => `  - ${field}`).join('\n')}`,
  );
  const count = causes.length === 1 ? '1 conflict' : `${causes.length} conflicts`;
  return new CliError(
    `Apply failed with ${count}: ${owners.join('\n')}\n` +
      'These fields belong to other managers. To settle it, either take them over with\n' +
      '--force-conflicts, or leave them out of the applied object, or give them the\n' +
      'values they have on the server, which shares them.',
  );
}
