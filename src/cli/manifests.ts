import { readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { isObject, type JsonObject, type JsonValue } from '../base/json.ts';
import { parseYamlDocuments } from '../client/yaml.ts';
import type { FlagSpec } from './flags.ts';
import { CliError } from './io.ts';
import { namespaceOf } from './objects.ts';
import type { Session } from './session.ts';

export const manifestFlags: readonly FlagSpec[] = [
  { name: 'filename', short: 'f', type: 'list', help: 'File or folder of objects, - for stdin' },
  { name: 'recursive', short: 'R', type: 'boolean', help: 'Also the folders of a folder' },
];

/** An object from a file, and where it is from, for messages. */
export interface Manifest {
  readonly object: JsonObject;
  readonly source: string;
}

const extensions = new Set(['.json', '.yaml', '.yml']);

/** Reads all objects of `-f`, lists unfolded, in order. Throws CliError. */
export async function loadManifests(session: Session): Promise<Manifest[]> {
  const manifests: Manifest[] = [];
  const names = session.flags.list('filename').flatMap((one) => one.split(','));
  if (names.length === 0) throw new CliError('must specify one of -f and -k');
  for (const name of names) {
    if (name === '-') {
      manifests.push(...(await parseManifests(await session.io.stdin(), 'STDIN')));
      continue;
    }
    for (const file of filesAt(session, name)) {
      manifests.push(...(await parseManifests(readFileSync(session.path(file), 'utf8'), file)));
    }
  }
  if (manifests.length === 0) throw new CliError('no objects passed to apply');
  for (const { object } of manifests) checkNamespace(session, object);
  return manifests;
}

function checkNamespace(session: Session, object: JsonObject): void {
  const wanted = session.flags.text('namespace');
  const own = namespaceOf(object);
  if (wanted === undefined || own === '' || own === wanted) return;
  throw new CliError(
    `the namespace from the provided object ${JSON.stringify(own)} does not match the namespace ` +
      `${JSON.stringify(wanted)}. You must pass '--namespace=${own}' to perform this operation.`,
  );
}

function filesAt(session: Session, name: string): string[] {
  const full = session.path(name);
  let isFolder: boolean;
  try {
    isFolder = statSync(full).isDirectory();
  } catch {
    throw new CliError(`the path ${JSON.stringify(name)} does not exist`);
  }
  if (!isFolder) return [name];
  const recursive = session.flags.boolean('recursive');
  const entries = readdirSync(full, { withFileTypes: true });
  return entries
    .sort((one, other) => (one.name < other.name ? -1 : 1))
    .flatMap((entry) => {
      const inside = path.join(name, entry.name);
      if (entry.isDirectory()) return recursive ? filesAt(session, inside) : [];
      return extensions.has(path.extname(entry.name)) ? [inside] : [];
    });
}

/** The objects of a text of YAML or JSON documents. Rejects with CliError. */
export async function parseManifests(text: string, source: string): Promise<Manifest[]> {
  let documents: JsonValue[];
  try {
    documents = await parseYamlDocuments(text);
  } catch (error) {
    throw new CliError(`error parsing ${source}: ${(error as Error).message}`);
  }
  return documents.flatMap((document) => {
    if (!isObject(document)) throw new CliError(`error parsing ${source}: not an object`);
    return unfold(document, source);
  });
}

function unfold(object: JsonObject, source: string): Manifest[] {
  if (
    typeof object.kind === 'string' &&
    object.kind.endsWith('List') &&
    Array.isArray(object.items)
  ) {
    return object.items.filter(isObject).flatMap((item) => unfold(item, source));
  }
  for (const name of ['apiVersion', 'kind']) {
    if (typeof object[name] !== 'string' || object[name] === '') {
      throw new CliError(
        `error validating ${JSON.stringify(source)}: error validating data: ${name} not set; ` +
          'if you choose to ignore these errors, turn validation off with --validate=false',
      );
    }
  }
  return [{ object, source }];
}
