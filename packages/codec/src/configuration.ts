import { type JsonObject, member, objectOf, problemText } from '@wheelhouse/machinery';
import {
  DecodeError,
  decodeTyped,
  FoundPaths,
  type Property,
  type Schema,
} from '@wheelhouse/schema';
import { decodeYaml, YamlError } from './yaml.ts';

/** Thrown for an invalid configuration file. The message is one line. */
export class ConfigurationError extends Error {
  constructor(message: string) {
    super(message.replaceAll(/\s*\n\s*/g, ' '));
    this.name = 'ConfigurationError';
  }
}

/** The schema of a string. */
export const textType: Schema = { type: 'string' };
/** The schema of a boolean. */
export const truthType: Schema = { type: 'boolean' };

/** Returns the schema of a list. */
export function listType(items: Schema): Schema {
  return { type: 'array', items };
}

/** Returns the schema of a struct, in which absent members have their zero values, as in Go. */
export function structType(
  name: string,
  members: Readonly<Record<string, Schema | Property>>,
): Schema {
  const properties = Object.entries(members).map(([member, type]): [string, Property] => [
    member,
    'schema' in type ? type : { schema: type },
  ]);
  return { type: 'object', typeName: `apiserver.${name}`, properties: new Map(properties) };
}

/** Returns a member that is null if it is absent. */
export function optional(schema: Schema): Property {
  return { schema, pointer: true };
}

/** A kind of configuration file for `decodeConfiguration`. */
export interface ConfigurationFormat {
  readonly kind: string;
  /** The plugin that it configures, if the name of the kind does not contain it. */
  readonly of?: string;
  /** The group without the dialect's domain, as for `Dialect.group`; empty for the core group. */
  readonly group: string;
  /** Schemas by version. */
  readonly versions: Readonly<Record<string, Schema>>;
  /** Receives unknown and duplicate members; if absent, they are errors. */
  readonly onStrictProblems?: (problems: string) => void;
}

/**
 * Decodes a configuration file in JSON or YAML. Unknown and duplicate members are errors unless
 * `onStrictProblems` receives them.
 *
 * @param older another format that the file may have, recognized by its kind
 * @returns the decoded object and the version in its `apiVersion`
 * @throws ConfigurationError for an invalid file
 */
export async function decodeConfiguration(
  text: string,
  current: ConfigurationFormat,
  older?: ConfigurationFormat,
): Promise<{ readonly version: string; readonly object: JsonObject }> {
  if (text === '') throw new ConfigurationError('empty config data');
  try {
    const { value, duplicates, repeated = [] } = await decodeYaml(Buffer.from(text));
    const document = objectOf(value);
    const isOlder = older !== undefined && member(document, 'kind') === older.kind;
    const expected = isOlder ? older : current;
    const version = versionOf(document, expected);
    const strict = duplicates.map((path) => problemText({ code: 'duplicate field', path }));
    if (repeated.length > 0) strict.push(`yaml: unmarshal errors: ${repeated.join(', ')}`);
    const meta = { apiVersion: textType, kind: textType };
    const type = expected.versions[version] as Schema;
    const own = Object.fromEntries(type.properties ?? []);
    const whole = structType(expected.kind, { ...meta, ...own });
    const unknown = new FoundPaths();
    const object = decodeTyped(whole)(document, unknown);
    for (const path of unknown.paths) strict.push(problemText({ code: 'unknown field', path }));
    if (strict.length === 0) return { version, object };
    const problems = problemText({ code: 'strict', problems: strict });
    if (expected.onStrictProblems === undefined) throw new ConfigurationError(problems);
    expected.onStrictProblems(problems);
    return { version, object };
  } catch (error) {
    if (error instanceof YamlError || error instanceof DecodeError) {
      throw new ConfigurationError(error.message);
    }
    throw error;
  }
}

function versionOf(document: JsonObject, expected: ConfigurationFormat): string {
  const [kind, apiVersion] = [member(document, 'kind'), member(document, 'apiVersion')];
  if (typeof kind !== 'string' || kind === '') {
    throw new ConfigurationError("Object 'Kind' is missing");
  }
  if (typeof apiVersion !== 'string' || apiVersion === '') {
    throw new ConfigurationError("Object 'apiVersion' is missing");
  }
  const prefix = expected.group === '' ? '' : `${expected.group}/`;
  const version = apiVersion.startsWith(prefix) ? apiVersion.slice(prefix.length) : '';
  if (kind !== expected.kind || !Object.hasOwn(expected.versions, version)) {
    const [shownKind, shownVersion] = [kind, apiVersion].map((value) => JSON.stringify(value));
    throw new ConfigurationError(
      `no kind ${shownKind} is registered for version ${shownVersion} where ` +
        `${expected.kind} of ${Object.keys(expected.versions)
          .map((expectedVersion) => prefix + expectedVersion)
          .join(' or ')} is expected`,
    );
  }
  return version;
}
