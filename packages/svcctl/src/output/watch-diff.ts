import { toYaml } from '@wheelhouse/client';
import { isObject, type JsonObject } from '@wheelhouse/machinery';
import { nameOf, namespaceOf, objectAt, objectLabel, textAt } from '../objects.ts';
import type { Session } from '../session.ts';
import { type Paint, paintOf } from '../terminal.ts';
import { lineDiff } from './line-diff.ts';

/** What prints the changes of a watch (`get -w -o diff`). */
export interface DiffPrinter {
  /** Notes an object as it is at first; prints nothing. */
  note(object: JsonObject): void;
  /** Prints what an event changed. */
  show(type: string, object: JsonObject): void;
}

const words: Readonly<Record<string, string | undefined>> = {
  ADDED: 'added',
  MODIFIED: 'modified',
  DELETED: 'deleted',
};

/**
 * Prints each change as a line that says what happened to which object, and the difference of its
 * YAML as a unified diff, without the version, which differs every time, and without managed fields
 * unless `--show-managed-fields`.
 */
export function diffPrinter(session: Session): DiffPrinter {
  const states = new Map<string, string>();
  const paint = paintOf(session.io);
  const withManaged = session.flags.boolean('show-managed-fields');
  const keyOf = (object: JsonObject) => `${namespaceOf(object)}/${objectLabel(object)}`;
  return {
    note: (object) => states.set(keyOf(object), comparable(object, withManaged)),
    show(type, object) {
      const key = keyOf(object);
      const before = states.get(key) ?? '';
      const after = type === 'DELETED' ? '' : comparable(object, withManaged);
      if (type === 'DELETED') states.delete(key);
      else states.set(key, after);
      const namespace = namespaceOf(object);
      const place = session.flags.boolean('all-namespaces') ? ` in ${namespace}` : '';
      const version = textAt(object, 'metadata', 'resourceVersion');
      const what = `${objectLabel(object)}${place} ${words[type] ?? type} at version ${version}`;
      const lines = type === 'DELETED' ? [] : lineDiff(before, after);
      const text = [paint(what, 'bold'), ...lines.map((line) => painted(line, paint))];
      session.io.out(`${text.join('\n')}\n`);
    },
  };
}

function painted(line: string, paint: Paint): string {
  if (line.startsWith('@@')) return paint(line, 'cyan');
  if (line.startsWith('+')) return paint(line, 'green');
  return line.startsWith('-') ? paint(line, 'red') : line;
}

function comparable(object: JsonObject, withManaged: boolean): string {
  const { resourceVersion: _, managedFields, ...metadata } = objectAt(object, 'metadata');
  const shown =
    withManaged && managedFields !== undefined ? { ...metadata, managedFields } : metadata;
  return toYaml({ ...object, metadata: shown });
}

/** The objects of a list, or the object itself, each with its type. */
export function listedObjects(body: JsonObject): JsonObject[] {
  if (!Array.isArray(body.items)) return nameOf(body) === '' ? [] : [body];
  const type = { apiVersion: body.apiVersion, kind: String(body.kind).replace(/List$/, '') };
  return body.items.filter(isObject).map((item) => ({ ...type, ...item }));
}
