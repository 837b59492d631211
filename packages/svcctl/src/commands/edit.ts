import { ApiError } from '@wheelhouse/client';
import { type JsonObject, type JsonValue, jsonEqual } from '@wheelhouse/machinery';
import {
  type EditOutcome,
  type EditReason,
  editedObjects,
  editHeading,
  editInEditor,
  editorFlags,
  originalFinder,
  shownObjects,
} from '../apply/edit-session.ts';
import { twoWayPatch } from '../apply/patches.ts';
import {
  dryRunSuffix,
  lastAppliedName,
  managerFlag,
  saveConfigFlag,
  validateFlag,
  withLastApplied,
  writeQuery,
} from '../apply/writes.ts';
import type { Command } from '../command.ts';
import { CliError } from '../io.ts';
import { manifestFlags } from '../manifests.ts';
import { nameOf, namespaceOf, objectAt, quotedLabel } from '../objects.ts';
import { compactJson } from '../output/go-json.ts';
import { outputFlags, reportObject } from '../output/output.ts';
import { fetchTarget, selectTargets, type Target, targetPath } from '../selection.ts';
import type { Session } from '../session.ts';

export const editCommand: Command = {
  name: 'edit',
  completes: 'objects',
  summary: 'Edit a resource on the server',
  usage: '(TYPE NAME | TYPE/NAME | -f FILENAME)',
  flags: [
    ...manifestFlags,
    managerFlag,
    validateFlag,
    ...outputFlags,
    saveConfigFlag,
    ...editorFlags,
    { name: 'output-patch', type: 'boolean', help: 'Print the patch as well' },
    { name: 'subresource', type: 'text', help: 'Subresource to edit: status, scale' },
  ],
  async run(session, args) {
    const edits: ObjectEdit[] = [];
    const targets = await selectTargets(session, args);
    session.throwDeferred();
    for (const target of targets) {
      for (const object of await fetchTarget(session, target)) edits.push({ target, object });
    }
    const [first] = edits;
    if (first === undefined) throw new CliError('edit cancelled, no objects found');
    const shown = edits.map(({ object }) => shownObject(session, object));
    return editInEditor(session, {
      heading: editHeading,
      subject: subjectOf(first),
      shown: shownObjects(shown),
      apply: (edited) => sendEdits(session, edits, edited),
    });
  },
};

/** An object that the user edits. */
interface ObjectEdit {
  readonly target: Target;
  readonly object: JsonObject;
}

const subjectOf = ({ target, object }: ObjectEdit): string =>
  quotedLabel(target.resource, nameOf(object));

const showsManagedFields = ({ flags }: Session): boolean => flags.boolean('show-managed-fields');

function shownObject(session: Session, object: JsonObject): JsonObject {
  if (showsManagedFields(session)) return object;
  const { managedFields: _, ...metadata } = objectAt(object, 'metadata');
  return { ...object, metadata };
}

const withManagedFields = (edited: JsonObject, managedFields: JsonValue): JsonObject => ({
  ...edited,
  metadata: { ...objectAt(edited, 'metadata'), managedFields },
});

/** The refusals of one round of edits. */
interface Refusals {
  /** Reasons to edit invalid objects again. */
  readonly reasons: EditReason[];
  /** Whether objects no longer exist. */
  isGone: boolean;
  /** Whether the server refused objects for another reason. */
  isRefused: boolean;
}

/**
 * Sends each edited object that differs from its original. Continues after a refusal, and reports
 * what becomes of the file afterward: a refusal that a new attempt may overcome comes first.
 */
async function sendEdits(
  session: Session,
  edits: readonly ObjectEdit[],
  edited: JsonValue,
): Promise<EditOutcome> {
  const originalOf = originalFinder(edits);
  const pairs = editedObjects(edited).map((item) => ({ edit: originalOf(item), item }));
  for (const { edit, item } of pairs) checkNamespace(session, edit, item);
  const refusals: Refusals = { reasons: [], isGone: false, isRefused: false };
  for (const { edit, item } of pairs) await sendEdit(session, { edit, item, refusals });
  const { reasons, isGone, isRefused } = refusals;
  if (isRefused) {
    const messageFor = (file: string) =>
      `You can run \`svcctl replace -f ${file}\` to try this update again.\n`;
    return { type: 'kept', messageFor };
  }
  if (isGone) {
    const messageFor = (file: string) =>
      `The edits you made on deleted resources have been saved to ${JSON.stringify(file)}\n`;
    return { type: 'kept', messageFor };
  }
  return reasons.length > 0 ? { type: 'again', reasons } : { type: 'done' };
}

function checkNamespace(session: Session, { object }: ObjectEdit, item: JsonObject): void {
  const namespace = namespaceOf(item);
  if (namespace === namespaceOf(object)) return;
  throw new CliError(
    `the namespace from the provided object ${JSON.stringify(namespace)} does not match the ` +
      `namespace ${JSON.stringify(session.namespace)}. You must pass '--namespace=${namespace}' ` +
      'to perform this operation.',
  );
}

async function sendEdit(
  session: Session,
  sent: { readonly edit: ObjectEdit; readonly item: JsonObject; readonly refusals: Refusals },
): Promise<void> {
  const { target, object } = sent.edit;
  const managedFields = objectAt(object, 'metadata')['managedFields'];
  const whole =
    showsManagedFields(session) || managedFields === undefined
      ? sent.item
      : withManagedFields(sent.item, managedFields);
  const after = session.flags.boolean('save-config')
    ? await withSavedConfig(session, whole)
    : whole;
  if (jsonEqual(object, after)) {
    reportObject(session, after, 'skipped');
    return;
  }
  const { resource } = target;
  const { patch, contentType } = await twoWayPatch(session, { resource, before: object, after });
  if (session.flags.boolean('output-patch')) session.io.out(`Patch: ${compactJson(patch)}\n`);
  try {
    const { object: written } = await session.client.send({
      method: 'PATCH',
      path: targetPath(
        { ...target, name: nameOf(object) },
        session.flags.text('subresource') ?? '',
      ),
      query: writeQuery(session, 'svcctl-edit'),
      contentType,
      body: patch,
    });
    reportObject(session, written, `edited${dryRunSuffix(session)}`);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    recordRefusal(session, { ...sent, error });
  }
}

/** Reports that the server refused an edited object. */
function recordRefusal(
  session: Session,
  {
    edit,
    error,
    refusals,
  }: { readonly edit: ObjectEdit; readonly error: ApiError; readonly refusals: Refusals },
): void {
  const subject = subjectOf(edit);
  if (error.reason === 'Invalid') {
    session.io.err(`error: ${subject} is invalid\n`);
    const details = (error.details?.causes ?? []).map(
      ({ field = '', message = '' }) => `${field}: ${message}`,
    );
    refusals.reasons.push({ head: `${subject} was not valid`, details });
  } else if (error.code === 404) {
    session.io.err(`error: ${subject} could not be found on the server\n`);
    refusals.isGone = true;
  } else {
    session.io.err(`error: ${subject} could not be patched: ${error.message}\n`);
    refusals.isRefused = true;
  }
}

/** Adds the last-applied annotation, whose value omits `managedFields`. */
async function withSavedConfig(session: Session, edited: JsonObject): Promise<JsonObject> {
  const annotation = await lastAppliedName(session);
  const { managedFields, ...metadata } = objectAt(edited, 'metadata');
  const annotated = withLastApplied({ ...edited, metadata }, annotation);
  return { ...annotated, metadata: { ...objectAt(annotated, 'metadata'), managedFields } };
}
