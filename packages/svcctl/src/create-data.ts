import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import type { JsonObject } from '@wheelhouse/machinery';
import type { FlagSpec } from './flags.ts';
import { CliError } from './io.ts';
import { objectAt, textAt } from './objects.ts';
import { compactJson } from './output/pretty-json.ts';
import type { Session } from './session.ts';

/** Flags of commands that fill an object with data. */
export const dataFlags: readonly FlagSpec[] = [
  { name: 'from-literal', type: 'list', help: 'KEY=VALUE' },
  { name: 'from-file', type: 'list', help: '[KEY=]FILE, or a folder' },
  { name: 'from-env-file', type: 'list', help: 'A file of KEY=VALUE lines' },
];

/** Puts a hash of the data behind the name, so that other data means another name. */
export const hashFlag: FlagSpec = {
  name: 'append-hash',
  type: 'boolean',
  help: 'Append a hash of the data to the name',
};

/**
 * Reads the data of a Secret off the flags, or that of the ConfigMap of a name. Throws CliError.
 * @param fileKey the key of a file that is given without one, absent: the file's name
 */
export function dataOf(
  session: Session,
  { ofMap, fileKey }: { readonly ofMap?: string; readonly fileKey?: string } = {},
): Map<string, Buffer> {
  const data = new Map<string, Buffer>();
  const add = (key: string, value: Buffer) => {
    if (!/^[-._a-zA-Z0-9]{1,253}$/.test(key)) {
      throw new CliError(`${JSON.stringify(key)} is not a valid key name`);
    }
    if (data.has(key)) {
      const named = ofMap === undefined ? key : JSON.stringify(key);
      const where = ofMap === undefined ? '' : ` in Data for ConfigMap ${JSON.stringify(ofMap)}`;
      throw new CliError(
        `cannot add key ${named}, another key by that name already exists${where}`,
      );
    }
    data.set(key, value);
  };
  for (const literal of session.flags.list('from-literal')) {
    const equals = literal.indexOf('=');
    if (equals <= 0) throw new CliError(`invalid literal source ${literal}, expected key=value`);
    add(literal.slice(0, equals), Buffer.from(literal.slice(equals + 1)));
  }
  for (const source of session.flags.list('from-file')) {
    const whole = fileKey === undefined || source.includes('=') ? source : `${fileKey}=${source}`;
    for (const { key, file } of filesOf(session, whole)) add(key, readFileSync(file));
  }
  for (const file of session.flags.list('from-env-file')) {
    for (const line of readFileSync(session.path(file), 'utf8').split(/\r?\n/)) {
      const trimmed = line.trimStart();
      if (trimmed === '' || trimmed.startsWith('#')) continue;
      const equals = trimmed.indexOf('=');
      const key = equals < 0 ? trimmed : trimmed.slice(0, equals);
      const value = equals < 0 ? (session.io.env[key] ?? '') : trimmed.slice(equals + 1);
      add(key, Buffer.from(value));
    }
  }
  return data;
}

function filesOf(session: Session, source: string): { key: string; file: string }[] {
  const equals = source.indexOf('=');
  const file = session.path(equals < 0 ? source : source.slice(equals + 1));
  const stat = statSync(file, { throwIfNoEntry: false });
  if (stat === undefined) throw new CliError(`error reading ${file}: no such file or directory`);
  if (!stat.isDirectory()) {
    return [{ key: equals < 0 ? path.basename(file) : source.slice(0, equals), file }];
  }
  if (equals >= 0) throw new CliError('cannot give a key name for a directory path');
  return readdirSync(file, { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => ({ key: entry.name, file: path.join(file, entry.name) }));
}

/** The object with a hash of its data behind its name, the one that kubectl appends. */
export function withHash(session: Session, object: JsonObject): JsonObject {
  if (!session.flags.boolean('append-hash')) return object;
  const name = textAt(object, 'metadata', 'name');
  const binaryData = objectAt(object, 'binaryData');
  const hashed: JsonObject = {
    ...(Object.keys(binaryData).length === 0 ? {} : { binaryData }),
    data: objectAt(object, 'data'),
    kind: textAt(object, 'kind'),
    name,
    ...(object['kind'] === 'Secret' ? { type: textAt(object, 'type') } : {}),
  };
  const digest = createHash('sha256').update(compactJson(hashed)).digest('hex').slice(0, 10);
  // Letters and digits that could spell something, or be taken for each other, are replaced.
  const letters: Readonly<Record<string, string>> = { 0: 'g', 1: 'h', 3: 'k', a: 'm', e: 't' };
  const suffix = [...digest].map((letter) => letters[letter] ?? letter).join('');
  return { ...object, metadata: { ...objectAt(object, 'metadata'), name: `${name}-${suffix}` } };
}
