import { readdirSync, readFileSync, statSync } from 'node:fs';
import { extname, join } from 'node:path';
import { loadYaml } from '@wheelhouse/client';
import {
  appendAll,
  type Dialect,
  dialectNames,
  dialectOf,
  errorText,
  isObject,
  itemsOfList,
  type JsonValue,
  parseApiVersion,
  systemErrorCode,
} from '@wheelhouse/machinery';
import type { ManifestObject, ManifestSource } from './types.ts';

/** An object and its source, for messages. */
export interface Manifest {
  readonly object: ManifestObject;
  /** `crds/widgets.yaml:12`, `line 12` of a text, or empty for an object. */
  readonly place: string;
}

/** A manifest that cannot be read or installed. The message begins with its file and line. */
export class ManifestError extends Error {
  /** The file as the caller named it; undefined for texts and objects. */
  readonly file: string | undefined;
  /** The line, from 1; undefined if the error concerns the whole file. */
  readonly line: number | undefined;

  constructor(options: {
    message: string;
    file?: string | undefined;
    line?: number | undefined;
    cause?: unknown;
  }) {
    const place = placeOf(options);
    super(place === '' ? options.message : `${place}: ${options.message}`, {
      cause: options.cause,
    });
    this.name = 'ManifestError';
    this.file = options.file;
    this.line = options.line;
  }
}

interface Place {
  readonly file?: string | undefined;
  readonly line?: number | undefined;
}

function placeOf({ file, line }: Place): string {
  if (file === undefined) return line === undefined ? '' : `line ${line}`;
  return line === undefined ? file : `${file}:${line}`;
}

const extensions = new Set(['.json', '.yaml', '.yml']);

/** Reads all objects of the sources in order, with lists expanded. Rejects with ManifestError. */
export async function readSources(sources: readonly ManifestSource[]): Promise<Manifest[]> {
  const manifests: Manifest[] = [];
  for (const source of sources) {
    if (typeof source !== 'string') appendAll(manifests, manifestsOf(source, {}));
    else if (source.includes('\n')) appendAll(manifests, await readDocuments(source, undefined));
    else {
      for (const file of filesAt(source)) {
        appendAll(manifests, await readDocuments(readText(file), file));
      }
    }
  }
  return manifests;
}

/**
 * Reads the definitions of custom kinds among the objects of the sources. Rejects with
 * ManifestError, even if only one source contains none.
 */
export async function readDefinitions(
  sources: readonly ManifestSource[],
  dialect: Dialect,
): Promise<Manifest[]> {
  const allDefinitions: Manifest[] = [];
  for (const source of sources) {
    const manifests = await readSources([source]);
    const definitions = manifests.filter(({ object }) => isDefinition(object, dialect));
    if (definitions.length === 0) throw noDefinitions(source, { manifests, dialect });
    appendAll(allDefinitions, definitions);
  }
  return allDefinitions;
}

/** Whether an object defines a custom kind. */
export function isDefinition({ apiVersion, kind }: ManifestObject, dialect: Dialect): boolean {
  const group = parseApiVersion(apiVersion)?.group;
  return kind === 'CustomResourceDefinition' && group === dialect.group('apiextensions');
}

function noDefinitions(
  source: ManifestSource,
  { manifests, dialect }: { readonly manifests: readonly Manifest[]; readonly dialect: Dialect },
): ManifestError {
  const file = typeof source === 'string' && !source.includes('\n') ? source : undefined;
  const hints = manifests.map(({ object }) => otherDialect(object, dialect));
  const hint = hints.find((text) => text !== '') ?? '';
  return new ManifestError({ file, message: `contains no CustomResourceDefinition${hint}` });
}

/** Returns a hint at the other dialect if it has the object's group; otherwise an empty text. */
export function otherDialect({ apiVersion }: ManifestObject, dialect: Dialect): string {
  const group = parseApiVersion(apiVersion)?.group ?? '';
  const otherName = dialectNames.find(
    (name) => name !== dialect.name && group.endsWith(`.${dialectOf(name).groupSuffix}`),
  );
  return otherName === undefined ? '' : `; start the plane with flags: ['--dialect=${otherName}']`;
}

function filesAt(path: string): readonly string[] {
  try {
    if (!statSync(path).isDirectory()) return [path];
    return readdirSync(path)
      .filter((name) => extensions.has(extname(name)))
      .sort()
      .map((name) => join(path, name))
      .filter((file) => statSync(file).isFile());
  } catch (cause) {
    throw new ManifestError({ file: path, message: `cannot be read: ${codeOf(cause)}`, cause });
  }
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new ManifestError({ file, message: `cannot be read: ${codeOf(cause)}`, cause });
  }
}

function codeOf(error: unknown): string {
  const code = systemErrorCode(error);
  const message = errorText(error);
  return code === 'ENOENT' ? 'no such file or directory' : (code ?? message);
}

/** Reads the documents of a text, each parsed separately, to bound the memory. */
async function readDocuments(text: string, file: string | undefined): Promise<Manifest[]> {
  const { parseYaml } = await loadYaml();
  const manifests: Manifest[] = [];
  for (const { document, line: first } of documentsOf(text)) {
    let value: JsonValue;
    try {
      value = await parseYaml(document);
    } catch (cause) {
      throw parseFailure({ cause, file, first });
    }
    if (value === null) continue;
    appendAll(manifests, manifestsOf(value, { file, line: firstLineOf(document, first) }));
  }
  return manifests;
}

/** Splits a text at `---`, after which content may follow on the same line. Lines count from 1. */
function documentsOf(text: string): readonly { document: string; line: number }[] {
  const documents: { document: string; line: number }[] = [];
  let lines: string[] = [];
  let first = 1;
  for (const [at, line] of text.split('\n').entries()) {
    if (!/^---(\s|$)/.test(line)) {
      lines.push(line);
      continue;
    }
    documents.push({ document: lines.join('\n'), line: first });
    lines = [line.slice(3)];
    first = at + 1;
  }
  documents.push({ document: lines.join('\n'), line: first });
  return documents;
}

/** The line on which a document's content begins. */
function firstLineOf(document: string, first: number): number {
  const at = document.split('\n').findIndex((line) => !/^\s*(#|$)/.test(line));
  return first + Math.max(at, 0);
}

/** The error for a document that cannot be parsed. The parser counts lines within the document. */
function parseFailure({
  cause,
  file,
  first,
}: {
  cause: unknown;
  file: string | undefined;
  first: number;
}): ManifestError {
  const text = errorText(cause);
  const [, line = '1'] = /\bline (\d+)/.exec(text) ?? [];
  const message = `cannot be parsed: ${text.replace(/^(yaml: )?(line \d+: )?/, '')}`;
  return new ManifestError({ message, file, line: first + Number(line) - 1, cause });
}

function manifestsOf(value: unknown, place: Place): Manifest[] {
  if (!isObject(value)) throw new ManifestError({ ...place, message: 'is not an object' });
  const items = itemsOfList(value);
  if (items !== undefined) return items.flatMap((item) => manifestsOf(item, place));
  for (const name of ['apiVersion', 'kind']) {
    if (typeof value[name] === 'string' && value[name] !== '') continue;
    throw new ManifestError({
      ...place,
      message: `is not an object of the API: it has no ${name}`,
    });
  }
  return [{ object: value as ManifestObject, place: placeOf(place) }];
}
