import { ApiError, type ApiResource, parseYaml } from '@wheelhouse/client';
import {
  apiVersionOf,
  errorText,
  type JsonObject,
  type JsonValue,
  jsonEqual,
} from '@wheelhouse/machinery';
import { patchLocally } from '../apply/local-patch.ts';
import { recordAt, recorded, recordFlag } from '../apply/record.ts';
import {
  dryRunFlag,
  dryRunOf,
  dryRunQuery,
  localDryRunError,
  localFlag,
  managerFlag,
  withNamespace,
} from '../apply/writes.ts';
import type { Command } from '../command.ts';
import { reportFailures, visitEach } from '../errors.ts';
import { CliError, throwFirst } from '../io.ts';
import { loadManifests, manifestFlags } from '../manifests.ts';
import { textAt } from '../objects.ts';
import { outputFlags, reportObject } from '../output/output.ts';
import { fetchTarget, selectTargets, targetPath } from '../selection.ts';
import type { Session } from '../session.ts';

type PatchType = 'json' | 'merge' | 'strategic';

const patchTypes: Readonly<Record<PatchType, string>> = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
};

/**
 * Patches objects on the server, by default with a strategic merge patch. `--local` patches the
 * objects of files without a server.
 */
export const patchCommand: Command = {
  name: 'patch',
  completes: 'objects',
  summary: 'Update fields of a resource',
  usage: '(TYPE NAME | TYPE/NAME | -f FILENAME) [-p PATCH | --patch-file FILE]',
  flags: [
    ...manifestFlags,
    dryRunFlag,
    managerFlag,
    ...outputFlags,
    { name: 'patch', short: 'p', type: 'text', help: 'The patch in JSON or YAML' },
    { name: 'patch-file', type: 'text', help: 'File that contains the patch' },
    { name: 'type', type: 'text', help: 'json, merge, or strategic (default)' },
    { name: 'subresource', type: 'text', help: 'Subresource to patch, such as status' },
    localFlag,
    recordFlag,
  ],
  async run(session, args) {
    const type = typeOf(session);
    const contentType = patchTypes[type];
    const isLocal = checkLocal(session, args);
    const text = readPatch(session);
    const body = await bodyOf(text);
    const patchedLocally = async (object: JsonObject) => {
      const patch = await parsePatch(text);
      return patchLocally(object, { type, patch });
    };
    if (isLocal) {
      for (const { object } of await loadManifests(session)) {
        reportObject(session, await patchedLocally(object), 'patched');
      }
      return 0;
    }
    const targets = await selectTargets(session, args);
    const failures = await visitEach(session.io, targets, async (target) => {
      if (target.name === undefined) {
        throw new CliError('resource(s) were provided, but no name was specified');
      }
      // Like kubectl, compare the patched object with that in the file.
      const { resource, object: written } = target;
      const before =
        written === undefined
          ? (await fetchTarget(session, target))[0]!
          : withNamespace(session, { resource, object: written });
      if (dryRunOf(session) === 'client') {
        const after = await recorded(session, await patchedLocally(before));
        reportObject(session, after, `patched${isUnchanged(before, after) ? ' (no change)' : ''}`);
        return;
      }
      const path = targetPath(target, session.flags.text('subresource') ?? '');
      const query = patchQuery(session);
      const answer = await session.client
        .send({ method: 'PATCH', path, query, contentType, body })
        .catch((error) => {
          throw withType(error, { contentType, resource });
        });
      const same = isUnchanged(before, answer.object) ? ' (no change)' : '';
      const object = await recordAt(session, { path, query, object: answer.object });
      // Like kubectl, do not mark a dry run in the report.
      reportObject(session, object, `patched${same}`);
    });
    return reportFailures(session.io, failures);
  },
};

function typeOf({ flags }: Session): PatchType {
  const text = flags.text('type') || 'strategic';
  const type = text.toLowerCase();
  if (type === 'json' || type === 'merge' || type === 'strategic') return type;
  throw new CliError(`--type must be one of [json merge strategic], not ${JSON.stringify(text)}`);
}

/** Whether `--local` is set. Throws CliError if other arguments require a server. */
function checkLocal(session: Session, args: readonly string[]): boolean {
  if (!session.flags.boolean('local')) return false;
  if (args.length > 0) throw new CliError('cannot specify --local and server resources');
  if (dryRunOf(session) === 'server') throw new CliError(localDryRunError);
  return true;
}

/** Names the type of a patch that the server does not support for a kind. */
function withType(
  error: unknown,
  { contentType, resource }: { readonly contentType: string; readonly resource: ApiResource },
): unknown {
  if (!(error instanceof ApiError) || error.reason !== 'UnsupportedMediaType') return error;
  const kind = `${apiVersionOf(resource)}, Kind=${resource.kind}`;
  return new CliError(`${contentType} is not supported by ${kind}: ${error.message}`);
}

function readPatch(session: Session): string {
  const file = session.flags.text('patch-file') ?? '';
  const patch = session.flags.text('patch') ?? '';
  throwFirst([
    file !== '' && patch !== '' && 'cannot specify --patch and --patch-file together',
    file === '' &&
      patch === '' &&
      'must specify --patch or --patch-file containing the contents of the patch',
  ]);
  return file === '' ? patch : patchFile(session, file);
}

/** Returns the body of a patch. Rejects with CliError. */
async function bodyOf(text: string): Promise<JsonValue> {
  // Like kubectl, leave what looks like JSON to the server.
  if (text.trimStart().startsWith('{')) return text;
  const value = await parsePatch(text);
  return typeof value === 'string' ? JSON.stringify(value) : value;
}

async function parsePatch(text: string): Promise<JsonValue> {
  try {
    return await parseYaml(text);
  } catch (error) {
    throw new CliError(`unable to parse ${JSON.stringify(text)}: ${errorText(error)}`);
  }
}

const patchFile = (session: Session, file: string): string =>
  session.readFile(file, (why) => `unable to read patch file: ${why}`).toString();

/** The query of the patch. Like kubectl, leaves unknown fields to the server. */
const patchQuery = (session: Session): Record<string, string | undefined> => ({
  ...dryRunQuery(session),
  fieldManager: session.flags.text('field-manager') ?? 'svcctl-patch',
});

/** Whether a write left the object unchanged. */
function isUnchanged(before: JsonObject, after: JsonObject): boolean {
  const version = textAt(before, 'metadata', 'resourceVersion');
  if (version !== '' && version !== textAt(after, 'metadata', 'resourceVersion')) return false;
  return jsonEqual(before, after);
}
