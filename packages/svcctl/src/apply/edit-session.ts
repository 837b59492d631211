import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseYaml, toYaml } from '@wheelhouse/client';
import {
  errorText,
  goSyntax,
  isObject,
  itemsOfList,
  type JsonObject,
  type JsonValue,
  jsonEqual,
} from '@wheelhouse/machinery';
import type { FlagSpec } from '../flags.ts';
import { CliError } from '../io.ts';
import { objectAt, textAt } from '../objects.ts';
import { printJson } from '../output/go-json.ts';
import { withoutManagedFields } from '../output/output.ts';
import type { Session } from '../session.ts';

/** Flags of commands that open the editor. */
export const editorFlags: readonly FlagSpec[] = [
  {
    name: 'windows-line-endings',
    type: 'boolean',
    help: 'End the lines of the edited file with a carriage return and a newline',
  },
];

/** Throws CliError if the editor cannot show objects in the format of `-o`. */
export function checkEditFormat({ flags }: Session): void {
  const format = flags.text('output') || 'yaml';
  if (format === 'json' || format === 'yaml') return;
  throw new CliError(
    `unable to match a printer suitable for the output format ${JSON.stringify(format)}, ` +
      'allowed formats are: json,yaml',
  );
}

/** A reason to edit again, shown at the top of the file. */
export interface EditReason {
  readonly head: string;
  readonly details?: readonly string[];
}

/**
 * The outcome of an edit: accepted, to be edited again, or failed with the file kept. `messageFor`
 * returns the error message, which names the file.
 */
export type EditOutcome =
  | { readonly type: 'done' }
  | { readonly type: 'again'; readonly reasons: readonly EditReason[] }
  | { readonly type: 'kept'; messageFor(file: string): string };

/** Returns an object with the managed fields of its original, which users never edit. */
export function withFieldsOf(original: JsonObject, object: JsonObject): JsonObject {
  const { managedFields } = objectAt(original, 'metadata');
  if (managedFields === undefined) return object;
  return { ...object, metadata: { ...objectAt(object, 'metadata'), managedFields } };
}

/** Returns what the editor shows of objects, without managed fields: the only one, or a List. */
export const shownObjects = (objects: readonly JsonObject[]): JsonObject =>
  withoutManagedFields(
    objects.length === 1
      ? objects[0]!
      : { apiVersion: 'v1', kind: 'List', metadata: {}, items: [...objects] },
  );

/** Returns the objects of an edited file. Throws CliError if it is not an object. */
export function editedObjects(edited: JsonValue): JsonObject[] {
  if (!isObject(edited)) throw new CliError('the edited file is not an object');
  return (itemsOfList(edited) ?? [edited]).filter(isObject);
}

/**
 * Returns a function that finds the first original with the UID of an edited object; both may lack
 * one. The function throws CliError if there is none.
 */
export function originalFinder<Original extends { readonly object: JsonObject }>(
  originals: readonly Original[],
): (item: JsonObject) => Original {
  const uidOf = (object: JsonObject) => textAt(object, 'metadata', 'uid');
  // A Map keeps the last value of a key, hence the first original of each UID is set last.
  const byUid = new Map(
    originals.toReversed().map((original) => [uidOf(original.object), original]),
  );
  return (item) => {
    const original = byUid.get(uidOf(item));
    if (original !== undefined) return original;
    throw new CliError(
      `no original object found for &unstructured.Unstructured{Object:${goSyntax(item)}}`,
    );
  };
}

/** An object to edit, or several as a List. */
interface Edit {
  /** Comment lines for the top of the file. */
  readonly heading: string;
  /** The object, or the first one, in messages: `configmaps "x"`. */
  readonly subject: string;
  readonly shown: JsonValue;
  /** Writes what was edited. A rejection ends the session and keeps the file. */
  apply(edited: JsonValue): Promise<EditOutcome>;
}

/** The comment above an edited object. */
export const editHeading = `# Please edit the object below. Lines beginning with a '#' will be ignored,
# and an empty file will abort the edit. If an error occurs while saving this file will be
# reopened with the relevant failures.
#
`;

/** Maximum number of times that one session starts the editor. */
const roundsMax = 100;

/**
 * Opens an object in the user's editor until the result is accepted or unchanged. Resolves with the
 * exit code. Rejects with CliError; if the user has made changes, reports where they are kept.
 */
export async function editInEditor(session: Session, edit: Edit): Promise<number> {
  const asJson = session.flags.text('output') === 'json';
  const endsWithReturn = session.flags.boolean('windows-line-endings');
  const folder = mkdtempSync(path.join(tmpdir(), 'svcctl-edit-'));
  const file = path.join(folder, asJson ? 'object.json' : 'object.yaml');
  const original = asJson
    ? `${printJson(edit.shown, { step: '    ', order: 'sorted' })}\n`
    : toYaml(edit.shown);
  let keepsFile = false;
  let text = original;
  let reasons: readonly EditReason[] = [];
  try {
    for (let round = 0; round < roundsMax; round += 1) {
      const heading = asJson ? '' : `${edit.heading}${reasons.map(reasonText).join('')}`;
      const shown = (heading + text).replaceAll('\n', endsWithReturn ? '\r\n' : '\n');
      writeFileSync(file, shown, { mode: 0o600 });
      await runEditor(session, file).catch((error: unknown) => {
        // The user may have saved changes before the editor failed.
        keepsFile ||= existsSync(file) && readFileSync(file, 'utf8') !== shown;
        throw error;
      });
      const edited = withoutHeading(readFileSync(file, 'utf8').replaceAll('\r\n', '\n'));
      const isSame = await isEquivalent(edited, text);
      if (isSame && reasons.length > 0) {
        throw new CliError('Edit cancelled, no valid changes were saved.');
      }
      if (isSame) return reportCancel(session, 'no changes made');
      if (edited.split('\n').every(isComment)) {
        keepsFile = false;
        return reportCancel(session, 'saved file was empty');
      }
      text = edited;
      // From here on, a failure must keep the edited file.
      keepsFile = true;
      const outcome = await parseAndApply(session, edit, edited);
      if (outcome.type === 'kept') {
        session.io.err(outcome.messageFor(file));
        return 1;
      }
      keepsFile = outcome.type === 'again';
      if (outcome.type === 'done') return 0;
      reasons = outcome.reasons;
    }
    throw new CliError('Edit cancelled, no valid changes were saved.');
  } catch (error) {
    if (keepsFile)
      session.io.err(`A copy of your changes has been stored to ${JSON.stringify(file)}\n`);
    throw error;
  } finally {
    if (!keepsFile) rmSync(folder, { recursive: true, force: true });
  }
}

/** Whether two texts are equal, or represent the same object. */
async function isEquivalent(left: string, right: string): Promise<boolean> {
  if (left.trim() === right.trim()) return true;
  try {
    return jsonEqual(await parseYaml(left), await parseYaml(right));
  } catch {
    return false;
  }
}

function reportCancel(session: Session, reason: string): number {
  session.io.err(`Edit cancelled, ${reason}.\n`);
  return 0;
}

async function parseAndApply(session: Session, edit: Edit, text: string): Promise<EditOutcome> {
  let edited: JsonValue;
  try {
    edited = await parseYaml(text);
  } catch (error) {
    session.io.err(`error: ${edit.subject} is invalid\n`);
    const head = `The edited file had a syntax error: ${errorText(error)}`;
    return { type: 'again', reasons: [{ head }] };
  }
  return edit.apply(edited);
}

/** Opens a file in the user's editor. Rejects with CliError if the editor fails. */
async function runEditor(session: Session, file: string): Promise<void> {
  const { env } = session.io;
  const editor = env['SVC_EDITOR'] || env['KUBE_EDITOR'] || env['EDITOR'] || 'vi';
  // A shell interprets quotes.
  const needsShell = editor.includes(' ') && /["'\\]/.test(editor);
  const words = needsShell ? [env['SHELL'] || '/bin/bash', '-c', editor] : editor.split(' ');
  const [program = '', ...args] = words;
  const name = JSON.stringify(words.join(' '));
  if (needsShell) args.splice(-1, 1, `${editor} ${JSON.stringify(file)}`);
  else args.push(file);
  let code: number;
  try {
    code = await session.io.run(program, args);
  } catch {
    const problem = program.includes('/') ? 'there was a problem with' : 'unable to launch';
    throw new CliError(`${problem} the editor ${name}`);
  }
  if (code !== 0) throw new CliError(`there was a problem with the editor ${name}`);
}

const isComment = (line: string): boolean => /^\s*(?:#|$)/.test(line);

/** Removes the comments above an object. Other lines that begin with # may belong to its texts. */
function withoutHeading(text: string): string {
  const lines = text.split('\n');
  const from = lines.findIndex((line) => !isComment(line));
  return lines.slice(Math.max(0, from)).join('\n');
}

function reasonText({ head, details = [] }: EditReason): string {
  const commented = (line: string) => line.replaceAll('\n', '\n# ');
  const lines = details.map((detail) => `# * ${commented(detail)}\n`);
  return `# ${commented(head)}${details.length > 0 ? ':' : ''}\n${lines.join('')}#\n`;
}
