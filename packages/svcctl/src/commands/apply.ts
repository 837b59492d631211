import { type ApiResource, parseYaml, toYaml } from '@wheelhouse/client';
import { isObject, type JsonObject, jsonEqual } from '@wheelhouse/machinery';
import { applyByAnnotation } from '../apply/client-side-apply.ts';
import {
  checkEditFormat,
  editedObjects,
  editInEditor,
  editorFlags,
  originalFinder,
  shownObjects,
  withFieldsOf,
} from '../apply/edit-session.ts';
import { allowedKinds, findLeftovers, pruneFlags, pruneOne } from '../apply/prune.ts';
import { recorded, recordFlag } from '../apply/record.ts';
import {
  applyAndMigrate,
  applyFlags,
  isClientSide,
  managerOf,
} from '../apply/server-side-apply.ts';
import {
  clientSideManager,
  dryRunFlag,
  dryRunOf,
  dryRunSuffix,
  lastAppliedName,
  lastAppliedText,
  managerFlag,
  objectPath,
  validateFlag,
  withNamespace,
  writeFlags,
  writeQuery,
} from '../apply/writes.ts';
import type { Command } from '../command.ts';
import { checkCascade, recreationFlags } from '../deletion.ts';
import { throwTogether, visitEach } from '../errors.ts';
import type { FlagSpec } from '../flags.ts';
import { CliError, throwFirst, usageError } from '../io.ts';
import {
  eachManifest,
  hasManifests,
  loadManifests,
  type Manifest,
  manifestFlags,
} from '../manifests.ts';
import { nameOf, namespaceOf, quotedLabel, textAt } from '../objects.ts';
import { printJson } from '../output/go-json.ts';
import {
  outputFlags,
  printerOf,
  printList,
  reportObject,
  uncheckedOutputFlags,
} from '../output/output.ts';
import {
  allConflicts,
  allFlag,
  fetchTarget,
  hasSelector,
  noResourcesNamed,
  readNamed,
  resourceOfObject,
  selectorFlag,
  selectTargets,
} from '../selection.ts';
import type { Session } from '../session.ts';

const outputFlag: FlagSpec = { name: 'output', short: 'o', type: 'text', help: 'json or yaml' };

const viewCommand: Command = {
  name: 'view-last-applied',
  completes: 'objects',
  summary: 'View the last applied configuration, from the annotation',
  usage: '(TYPE [NAME | -l label] | TYPE/NAME | -f FILENAME)',
  flags: [selectorFlag, ...manifestFlags, outputFlag, allFlag],
  async run(session, args) {
    const output = session.flags.text('output') ?? 'yaml';
    if (output !== 'json' && output !== 'yaml') {
      throw usageError(
        'apply view-last-applied',
        `Unexpected -o output mode: ${output}, the flag 'output' must be one of yaml|json`,
      );
    }
    const annotation = await lastAppliedName(session);
    const texts: string[] = [];
    for (const target of await selectTargets(session, args, { all: 'excludes names' })) {
      for (const object of await fetchTarget(session, target)) {
        const text = textAt(object, 'metadata', 'annotations', annotation);
        if (text === '' && target.source !== undefined) {
          throw new CliError(
            'error when no last-applied-configuration annotation found on resource: ' +
              `${nameOf(object)}\n ${JSON.stringify(target.source)}: <nil>`,
          );
        }
        if (text !== '') texts.push(text);
      }
    }
    for (const text of texts) {
      const configuration = await parseYaml(text);
      session.io.out(output === 'json' ? `${printJson(configuration)}\n` : toYaml(configuration));
    }
    return 0;
  },
};

const setCommand: Command = {
  name: 'set-last-applied',
  summary: 'Store a file as the last applied configuration without other changes',
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
  async run(session) {
    if (!hasManifests(session)) throw noResourcesNamed();
    const annotation = await lastAppliedName(session);
    const changes: AppliedChange[] = [];
    // No object changes if one lacks the annotation.
    for (const { object } of await loadManifests(session)) {
      changes.push(await readApplied(session, { annotation, object }));
    }
    for (const change of changes) await setLastApplied(session, annotation, change);
    return 0;
  },
};

/** A new last applied configuration, and the object that it belongs to. */
interface AppliedChange {
  readonly path: string;
  readonly live: JsonObject;
  readonly value: string;
}

/** Reads the object of a configuration. Rejects with CliError if it lacks the annotation. */
async function readApplied(
  session: Session,
  { annotation, object }: { readonly annotation: string; readonly object: JsonObject },
): Promise<AppliedChange> {
  const resource = await resourceOfObject(session, object);
  const path = objectPath(session, { resource, object });
  const target = { namespace: namespaceOf(object) || session.namespace };
  const live = await readNamed(session, target, () => session.client.get(path));
  const before = textAt(live, 'metadata', 'annotations', annotation);
  if (before === '' && !session.flags.boolean('create-annotation')) {
    throw new CliError(
      `no last-applied-configuration annotation found on resource: ${nameOf(object)}, ` +
        'to create the annotation, run the command with --create-annotation',
    );
  }
  return { path, live, value: lastAppliedText(withNamespace(session, { resource, object })) };
}

async function setLastApplied(
  session: Session,
  annotation: string,
  { path, live, value }: AppliedChange,
): Promise<void> {
  const before = textAt(live, 'metadata', 'annotations', annotation);
  if (before.trimEnd() === value.trimEnd()) {
    session.io.out(`set-last-applied ${nameOf(live)}: no changes required.\n`);
    return;
  }
  if (dryRunOf(session) === 'client') {
    reportObject(session, live, `configured${dryRunSuffix(session)}`);
    return;
  }
  const { object: written } = await session.client.send({
    method: 'PATCH',
    path,
    // Without the flag, the server derives the manager from the user agent, as for kubectl.
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
  flags: [
    ...manifestFlags,
    managerFlag,
    validateFlag,
    recordFlag,
    ...uncheckedOutputFlags,
    ...editorFlags,
  ],
  async run(session, args) {
    checkEditFormat(session);
    const annotation = await lastAppliedName(session);
    const edits: AppliedEdit[] = [];
    for (const target of await selectTargets(session, args)) {
      for (const object of await fetchTarget(session, target)) {
        const text = textAt(object, 'metadata', 'annotations', annotation);
        const applied = text === '' ? undefined : await parseYaml(text);
        if (isObject(applied)) edits.push({ resource: target.resource, object: applied });
      }
    }
    const [first] = edits;
    if (first === undefined) {
      throw new CliError(
        'no last-applied-configuration annotation found on resources, to create the annotation, ' +
          'use command `svcctl apply set-last-applied --create-annotation`',
      );
    }
    return editInEditor(session, {
      heading,
      subject: quotedLabel(first.resource, nameOf(first.object)),
      shown: shownObjects(edits.map(({ object }) => object)),
      apply: async (edited) => {
        const originalOf = originalFinder(edits);
        const failures = await visitEach(session.io, editedObjects(edited), (item) =>
          setApplied(session, { annotation, item, original: originalOf(item) }),
        );
        throwTogether(failures);
        return { type: 'done' };
      },
    });
  },
};

/** A last applied configuration that the user edits. */
interface AppliedEdit {
  readonly resource: ApiResource;
  readonly object: JsonObject;
}

/** Stores an edited configuration, unless it equals the original, and reports it. */
async function setApplied(
  session: Session,
  edit: { readonly annotation: string; readonly item: JsonObject; readonly original: AppliedEdit },
): Promise<void> {
  const { annotation, original } = edit;
  const item = await recorded(session, withFieldsOf(original.object, edit.item));
  if (jsonEqual(item, original.object)) {
    reportObject(session, item, 'skipped');
    return;
  }
  const resource = await resourceOfObject(session, item);
  await session.client.send({
    method: 'PATCH',
    path: objectPath(session, { resource, object: item }),
    query: writeQuery(session, await clientSideManager(session)),
    contentType: 'application/merge-patch+json',
    body: { metadata: { annotations: { [annotation]: lastAppliedText(item) } } },
  });
  reportObject(session, item, `edited${dryRunSuffix(session)}`);
}

/** The subcommands of `apply` for the last-applied annotation. */
const lastAppliedCommands: readonly Command[] = [viewCommand, setCommand, editCommand];

/**
 * Applies manifests by a three-way merge with the last-applied annotation, or on the server with
 * `--server-side`. `--prune` deletes leftovers only after every manifest has been applied.
 */
export const applyCommand: Command = {
  name: 'apply',
  summary: 'Apply a configuration to a resource by file name or stdin',
  usage: '-f FILENAME',
  flags: [
    ...applyFlags,
    dryRunFlag,
    ...outputFlags,
    ...recreationFlags('no limit'),
    { name: 'openapi-patch', type: 'boolean', help: 'Ignored; svcctl contains the schemas' },
    { name: 'force', type: 'boolean', help: 'Delete and create objects that cannot be patched' },
    {
      name: 'overwrite',
      type: 'boolean',
      help: 'Overwrite changes that others made since the last apply (default)',
    },
    { name: 'subresource', type: 'text', help: 'Subresource to apply, such as status' },
    recordFlag,
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
    checkCascade(session);
    checkFlags(session, args);
    const prunes = session.flags.boolean('prune');
    const kinds = prunes ? await allowedKinds(session) : undefined;
    const applied: JsonObject[] = [];
    const exitCode = await eachManifest(session, 'apply', async (manifest) => {
      applied.push(await applyOne(session, manifest));
    });
    if (exitCode !== 0) return exitCode;
    printAll(session, applied);
    // Prune only after every object of the input has been applied.
    if (!prunes) return 0;
    for await (const leftover of findLeftovers(session, { applied, kinds })) {
      await pruneOne(session, leftover);
    }
    return 0;
  },
};

/** Throws CliError for conflicting flags. */
function checkFlags(session: Session, args: readonly string[]): void {
  const { flags } = session;
  if (args.length > 0) throw usageError('apply', `Unexpected args: [${args.join(' ')}]`);
  throwFirst([
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
    ...allConflicts(session),
    flags.boolean('prune') && flags.boolean('force') && '--force cannot be used with --prune',
    flags.boolean('prune') &&
      !hasSelector(flags) &&
      !flags.boolean('all') &&
      'all resources selected for prune without explicitly passing --all. ' +
        'To prune all resources, pass the --all flag. ' +
        'If you did not mean to prune all resources, specify a label selector',
  ]);
}

/** Applies one object and reports it, unless `-o` prints all objects at the end. */
async function applyOne(session: Session, manifest: Manifest): Promise<JsonObject> {
  const input = { ...manifest, object: await recorded(session, manifest.object) };
  const { object, done } = isClientSide(session)
    ? await applyByAnnotation(session, input, await managerOf(session))
    : await applyAndMigrate(session, input);
  if (!printsObjects(session)) reportObject(session, object, `${done}${dryRunSuffix(session)}`);
  return object;
}

const printsObjects = (session: Session): boolean => {
  const format = session.flags.text('output') ?? '';
  return format !== '' && format !== 'name';
};

/** Prints the applied object, or a List of several. */
function printAll(session: Session, applied: readonly JsonObject[]): void {
  const [only] = applied;
  if (!printsObjects(session) || only === undefined) return;
  if (applied.length > 1) printList(session, applied);
  else session.io.out(printerOf(session)?.(only) ?? '');
}
