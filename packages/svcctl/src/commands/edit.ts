import { ApiError } from '@wheelhouse/client';
import { type JsonObject, type JsonValue, jsonEqual } from '@wheelhouse/machinery';
import {
  checkEditFormat,
  type EditOutcome,
  type EditReason,
  editedObjects,
  editHeading,
  editInEditor,
  editorFlags,
  originalFinder,
  shownObjects,
  withFieldsOf,
} from '../apply/edit-session.ts';
import { twoWayPatch } from '../apply/patches.ts';
import { recorded, recordFlag } from '../apply/record.ts';
import {
  dryRunSuffix,
  lastAppliedName,
  managerFlag,
  saveConfigFlag,
  validateFlag,
  withLastApplied,
  withNamespace,
  writeQuery,
} from '../apply/writes.ts';
import type { Command } from '../command.ts';
import { reportFailures, throwTogether, visitEach } from '../errors.ts';
import { CliError } from '../io.ts';
import { manifestFlags, namespaceError } from '../manifests.ts';
import { nameOf, namespaceOf, quotedLabel } from '../objects.ts';
import { compactJson } from '../output/go-json.ts';
import { reportObject, uncheckedOutputFlags } from '../output/output.ts';
import { fetchTarget, selectTargets, type Target, targetPath } from '../selection.ts';
import type { Session } from '../session.ts';

/**
 * Edits objects in the user's editor and sends the differences as patches. Reopens the editor with
 * the errors if the server rejects them.
 */
export const editCommand: Command = {
  name: 'edit',
  completes: 'objects',
  summary: 'Edit a resource on the server',
  usage: '(TYPE NAME | TYPE/NAME | -f FILENAME)',
  flags: [
    ...manifestFlags,
    managerFlag,
    validateFlag,
    saveConfigFlag,
    recordFlag,
    ...uncheckedOutputFlags,
    ...editorFlags,
    { name: 'output-patch', type: 'boolean', help: 'Print the patch as well' },
    { name: 'subresource', type: 'text', help: 'Subresource to edit, such as status' },
  ],
  async run(session, args) {
    checkEditFormat(session);
    const edits: ObjectEdit[] = [];
    const targets = await selectTargets(session, args);
    session.throwDeferred();
    const failures = await visitEach(session.io, targets, async (target) => {
      for (const object of await fetchTarget(session, target)) edits.push({ target, object });
    });
    if (failures.length > 0) return reportFailures(session.io, failures);
    const [first] = edits;
    if (first === undefined) throw new CliError('edit cancelled, no objects found');
    return editInEditor(session, {
      heading: editHeading,
      subject: subjectOf(first),
      shown: shownObjects(edits.map(({ object }) => object)),
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
 * what becomes of the file afterward: an object that cannot be sent comes first, then a refusal that
 * a new attempt may overcome. Rejects with CliError if objects cannot be sent.
 */
async function sendEdits(
  session: Session,
  edits: readonly ObjectEdit[],
  edited: JsonValue,
): Promise<EditOutcome> {
  const originalOf = originalFinder(edits);
  const items = editedObjects(edited);
  for (const item of items) checkNamespace(session, edits, item);
  const refusals: Refusals = { reasons: [], isGone: false, isRefused: false };
  const failures = await visitEach(session.io, items, (item) =>
    sendEdit(session, { edit: originalOf(item), item, refusals }),
  );
  throwTogether(failures);
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

function checkNamespace(session: Session, edits: readonly ObjectEdit[], item: JsonObject): void {
  const namespace = namespaceOf(item);
  if (namespace === '' || edits.some(({ object }) => namespaceOf(object) === namespace)) return;
  throw namespaceError(namespace, session.namespace);
}

async function sendEdit(
  session: Session,
  sent: { readonly edit: ObjectEdit; readonly item: JsonObject; readonly refusals: Refusals },
): Promise<void> {
  const { target, object } = sent.edit;
  const { resource } = target;
  const whole = withFieldsOf(object, withNamespace(session, { resource, object: sent.item }));
  const saves = session.flags.boolean('save-config');
  const saved = saves ? withLastApplied(whole, await lastAppliedName(session)) : whole;
  const after = await recorded(session, saved);
  if (jsonEqual(object, after)) {
    reportObject(session, after, 'skipped');
    return;
  }
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
