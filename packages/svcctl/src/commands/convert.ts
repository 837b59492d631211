import { toYaml } from '@wheelhouse/client';
import { dialectNames, dialectOf, type JsonObject, parseApiVersion } from '@wheelhouse/machinery';
import { DecodeError, decodeTyped } from '@wheelhouse/schema';
import type { Command } from '../command.ts';
import {
  convertToVersion,
  findBuiltinKind,
  UnsuitableVersionError,
} from '../convert/convert-version.ts';
import { CliError } from '../io.ts';
import { loadTargets, type Manifest, manifestFlags } from '../manifests.ts';
import { outputFlags, printerOf } from '../output/output.ts';
import { resourceOfObject } from '../selection.ts';
import type { Session } from '../session.ts';

/** The session and the target version of a conversion. */
interface Conversion {
  readonly session: Session;
  readonly outputVersion: string | undefined;
}

/**
 * `convert` (VER-8): converts objects in files to another version, by default the newest, without a
 * server. Prints the object of a file that contains only one, and a List otherwise. Exits with 1 if
 * no object's kind has the version.
 */
export const convertCommand: Command = {
  name: 'convert',
  summary: 'Convert objects in files to another version',
  usage: '-f FILENAME',
  flags: [
    ...manifestFlags,
    {
      name: 'output-version',
      type: 'text',
      help: 'apiVersion to write, such as apps/v1; the newest of each kind if empty',
    },
    {
      name: 'local',
      type: 'boolean',
      help: 'Contact no server (default); otherwise, it must serve the kinds',
    },
    ...outputFlags,
  ],
  async run(session) {
    const print = printerOf(session) ?? toYaml;
    const outputVersion = session.flags.text('output-version') || undefined;
    if (outputVersion !== undefined && parseApiVersion(outputVersion) === undefined) {
      throw new CliError(`unexpected GroupVersion string: ${outputVersion}`);
    }
    const { manifests, failures } = await loadTargets(session);
    if (failures.length > 0) throw failures[0];
    if (!session.flags.boolean('local', true)) {
      for (const { object } of manifests) await resourceOfObject(session, object);
    }
    const results = manifests.map((manifest) =>
      convertManifest(manifest, { session, outputVersion }),
    );
    const objects = results.filter((result) => result !== undefined);
    const [only] = objects;
    const isSingle = objects.length === 1 && isSingleFile(session, manifests);
    const list: JsonObject = { kind: 'List', apiVersion: 'v1', metadata: {}, items: objects };
    session.io.out(print(isSingle && only !== undefined ? only : list));
    return objects.length === 0 && results.length > 0 ? 1 : 0;
  },
};

/** Whether the objects come from a single file other than standard input. */
function isSingleFile(session: Session, manifests: readonly Manifest[]): boolean {
  const names = session.flags.list('filename');
  const sources = new Set(manifests.map(({ source }) => source));
  return names.length === 1 && names[0] !== '-' && sources.size === 1;
}

/**
 * Converts an object. Returns undefined, after an error message, if its kind has no such version.
 */
function convertManifest(
  { object, source }: Manifest,
  conversion: Conversion,
): JsonObject | undefined {
  const type = { apiVersion: String(object.apiVersion), kind: String(object.kind) };
  for (const name of dialectNames) {
    const dialect = dialectOf(name);
    const from = findBuiltinKind(dialect, type);
    if (from === undefined) continue;
    const { outputVersion } = conversion;
    try {
      const typed = { ...type, ...decodeTyped(from.version.schema)(object) };
      const version = outputVersion === undefined ? {} : { outputVersion };
      const { kind, ...rest } = convertToVersion(typed, { dialect, from, ...version });
      return { kind, ...rest };
    } catch (error) {
      if (error instanceof UnsuitableVersionError) {
        conversion.session.io.err(`${error.message}\n`);
        return undefined;
      }
      if (!(error instanceof DecodeError)) throw error;
      throw new CliError(`unable to decode ${JSON.stringify(source)}: ${error.message}`);
    }
  }
  // Objects of unknown kinds stay unchanged, unless the newest version is requested.
  if (conversion.outputVersion !== undefined) return object;
  const { kind, apiVersion } = type;
  throw new CliError(
    `unable to decode ${JSON.stringify(source)}: no kind ${JSON.stringify(kind)} is registered ` +
      `for version ${JSON.stringify(apiVersion)} in scheme "builtin"`,
  );
}
