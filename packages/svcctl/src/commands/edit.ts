import { ApiError } from '@wheelhouse/client';
import { isObject, type JsonObject, type JsonValue } from '@wheelhouse/machinery';
import { type EditOutcome, editHeading, editInEditor, editorFlags } from '../apply/edit-session.ts';
import { twoWayPatch } from '../apply/patches.ts';
import {
  dryRunSuffix,
  lastAppliedName,
  saveConfigFlag,
  withLastApplied,
  writeFlags,
  writeQuery,
} from '../apply/writes.ts';
import type { Command } from '../command.ts';
import { CliError } from '../io.ts';
import { nameOf, objectAt, quotedLabel, textAt } from '../objects.ts';
import { compactJson } from '../output/go-json.ts';
import { outputFlags, reportObject } from '../output/output.ts';
import {
  fetchTarget,
  selectionFlags,
  selectTargets,
  type Target,
  targetPath,
} from '../selection.ts';
import type { Session } from '../session.ts';

export const editCommand: Command = {
  name: 'edit',
  completes: 'objects',
  summary: 'Edit a resource on the server',
  usage: '(TYPE NAME | TYPE/NAME | -f FILENAME)',
  flags: [
    ...selectionFlags,
    ...writeFlags,
    ...outputFlags,
    saveConfigFlag,
    ...editorFlags,
    { name: 'output-patch', type: 'boolean', help: 'Print the patch as well' },
    { name: 'subresource', type: 'text', help: 'Subresource to edit: status, scale' },
  ],
  async run(session, args) {
    let exitCode = 0;
    let objectCount = 0;
    const targets = await selectTargets(session, args);
    session.throwDeferred();
    for (const target of targets) {
      for (const object of await fetchTarget(session, target)) {
        objectCount += 1;
        exitCode = Math.max(exitCode, await editObject(session, { target, object }));
      }
    }
    if (objectCount === 0) throw new CliError('edit cancelled, no objects found');
    return exitCode;
  },
};

interface ObjectEdit {
  readonly target: Target;
  readonly object: JsonObject;
}

function editObject(session: Session, edit: ObjectEdit): Promise<number> {
  const { object } = edit;
  const keepsManagedFields = session.flags.boolean('show-managed-fields');
  const { managedFields, ...metadata } = objectAt(object, 'metadata');
  const shown: JsonObject = keepsManagedFields ? object : { ...object, metadata };
  return editInEditor(session, {
    heading: editHeading,
    subject: quotedLabel(edit.target.resource, nameOf(object)),
    shown,
    apply: (edited) => {
      if (!isObject(edited)) throw new CliError('the edited file is not an object');
      const whole =
        keepsManagedFields || managedFields === undefined
          ? edited
          : withManagedFields(edited, managedFields);
      return sendEdit(session, edit, whole);
    },
  });
}

const withManagedFields = (edited: JsonObject, managedFields: JsonValue): JsonObject => ({
  ...edited,
  metadata: { ...objectAt(edited, 'metadata'), managedFields },
});

async function sendEdit(
  session: Session,
  edit: ObjectEdit,
  edited: JsonObject,
): Promise<EditOutcome> {
  const { target, object } = edit;
  const namespace = textAt(edited, 'metadata', 'namespace');
  if (namespace !== textAt(object, 'metadata', 'namespace')) {
    throw new CliError(
      `the namespace from the provided object ${JSON.stringify(namespace)} does not match the ` +
        `namespace ${JSON.stringify(session.namespace)}. You must pass '--namespace=${namespace}' ` +
        'to perform this operation.',
    );
  }
  const after = session.flags.boolean('save-config')
    ? await withSavedConfig(session, edited)
    : edited;
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
    return { type: 'done' };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return handleRejection(session, edit, error);
  }
}

function handleRejection(
  session: Session,
  { target, object }: ObjectEdit,
  error: ApiError,
): EditOutcome {
  const subject = quotedLabel(target.resource, nameOf(object));
  if (error.reason === 'Invalid') {
    session.io.err(`error: ${subject} is invalid\n`);
    const details = (error.details?.causes ?? []).map(
      ({ field = '', message = '' }) => `${field}: ${message}`,
    );
    return { type: 'again', reasons: [{ head: `${subject} was not valid`, details }] };
  }
  if (error.code === 404) {
    session.io.err(`error: ${subject} could not be found on the server\n`);
    const messageFor = (file: string) =>
      `The edits you made on deleted resources have been saved to ${JSON.stringify(file)}\n`;
    return { type: 'kept', messageFor };
  }
  session.io.err(`error: ${subject} could not be patched: ${error.message}\n`);
  const messageFor = (file: string) =>
    `You can run \`svcctl replace -f ${file}\` to try this update again.\n`;
  return { type: 'kept', messageFor };
}

/** Adds the last-applied annotation, whose value omits `managedFields`. */
async function withSavedConfig(session: Session, edited: JsonObject): Promise<JsonObject> {
  const annotation = await lastAppliedName(session);
  const { managedFields, ...metadata } = objectAt(edited, 'metadata');
  const annotated = withLastApplied({ ...edited, metadata }, annotation);
  return { ...annotated, metadata: { ...objectAt(annotated, 'metadata'), managedFields } };
}
