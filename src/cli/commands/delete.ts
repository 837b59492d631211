import type { JsonObject } from '../../base/json.ts';
import { ApiError } from '../../client/api-client.ts';
import { resourcePath } from '../../client/rest-mapper.ts';
import { watchEvents } from '../../client/watch-stream.ts';
import type { Command } from '../command.ts';
import { describeError } from '../errors.ts';
import { CliError } from '../io.ts';
import { nameOf, namespaceOf, resourceLabel, textAt } from '../objects.ts';
import {
  listObjects,
  selectionFlags,
  selectorQuery,
  selectTargets,
  type Target,
  targetPath,
} from '../selection.ts';
import type { Session } from '../session.ts';
import { dryRunOf, dryRunSuffix, writeFlags } from '../writes.ts';

export const deleteCommand: Command = {
  name: 'delete',
  completes: 'objects',
  summary: 'Delete resources by file names, stdin, resources and names, or selectors',
  usage: '([-f FILENAME] | TYPE [(NAME | -l label | --all)])',
  flags: [
    ...selectionFlags,
    ...writeFlags.filter((flag) => flag.name === 'dry-run'),
    { name: 'all', type: 'boolean', help: 'All objects of the types' },
    { name: 'wait', type: 'boolean', help: 'Wait until the objects are gone (default)' },
    { name: 'timeout', type: 'text', help: 'How long to wait; 0: as long as it takes' },
    {
      name: 'cascade',
      type: 'text',
      bare: 'background',
      help: 'background, orphan or foreground: what becomes of dependents',
    },
    { name: 'grace-period', type: 'text', help: 'Seconds given to end; negative: the default' },
    { name: 'now', type: 'boolean', help: 'Same as --grace-period=1' },
    { name: 'force', type: 'boolean', help: 'Same as --grace-period=0' },
    { name: 'ignore-not-found', type: 'boolean', help: 'Absent objects are no error' },
    { name: 'output', short: 'o', type: 'text', help: 'name: print TYPE/NAME only' },
  ],
  async run(session, args) {
    const targets = await selectTargets(session, args);
    checkSelection(session, targets);
    const named = await nameTargets(session, targets);
    if (named.length === 0) {
      session.io.out('No resources found\n');
      return 0;
    }
    const deleted: { target: Target; uid: string }[] = [];
    let exitCode = 0;
    for (const target of named) {
      try {
        deleted.push({ target, uid: await deleteOne(session, target) });
      } catch (error) {
        if (isNotFound(error) && session.flags.boolean('ignore-not-found')) continue;
        session.io.err(describeError(error).text);
        exitCode = 1;
      }
    }
    if (session.flags.boolean('wait', true) && dryRunOf(session) === 'none') {
      const timeoutMs = session.flags.durationMs('timeout') ?? 0;
      for (const one of deleted) await waitForDeletion(session, { ...one, timeoutMs });
    }
    return exitCode;
  },
};

const isNotFound = (error: unknown): boolean => error instanceof ApiError && error.code === 404;

function checkSelection(session: Session, targets: readonly Target[]): void {
  const { flags } = session;
  const selected = flags.boolean('all') || flags.has('selector') || flags.has('field-selector');
  if (targets.some((target) => target.name === undefined) && !selected) {
    throw new CliError('resource(s) were provided, but no name was specified');
  }
}

async function nameTargets(session: Session, targets: readonly Target[]): Promise<Target[]> {
  const named: Target[] = [];
  for (const target of targets) {
    if (target.name !== undefined) {
      named.push(target);
      continue;
    }
    for (const object of await listObjects(session.client, target, selectorQuery(session))) {
      named.push({ ...target, namespace: namespaceOf(object), name: nameOf(object) });
    }
  }
  return named;
}

const policies: Readonly<Record<string, string>> = {
  background: 'Background',
  true: 'Background',
  orphan: 'Orphan',
  false: 'Orphan',
  foreground: 'Foreground',
};

function deleteOptions(session: Session): JsonObject {
  const { flags } = session;
  const cascade = flags.text('cascade') ?? 'background';
  const propagationPolicy = policies[cascade];
  if (propagationPolicy === undefined) {
    throw new CliError(
      `invalid cascade value (${cascade}). Must be "background", "foreground", or "orphan"`,
    );
  }
  const given = flags.integer('grace-period') ?? -1;
  const grace = flags.boolean('force') ? 0 : flags.boolean('now') ? 1 : given;
  return {
    kind: 'DeleteOptions',
    apiVersion: 'v1',
    propagationPolicy,
    ...(grace < 0 ? {} : { gracePeriodSeconds: grace }),
    ...(dryRunOf(session) === 'server' ? { dryRun: ['All'] } : {}),
  };
}

/** Deletes and reports; gives the uid of what went, empty when the answer doesn't tell. */
async function deleteOne(session: Session, target: Target): Promise<string> {
  let uid = '';
  if (dryRunOf(session) === 'client') {
    await session.client.get(targetPath(target));
  } else {
    const { object } = await session.client.send({
      method: 'DELETE',
      path: targetPath(target),
      body: deleteOptions(session),
    });
    uid = textAt(object, 'details', 'uid') || textAt(object, 'metadata', 'uid');
  }
  const label = resourceLabel(target.resource);
  const forced = session.flags.boolean('force') ? ' force' : '';
  session.io.out(
    session.flags.text('output') === 'name'
      ? `${label}/${target.name}\n`
      : `${label} ${JSON.stringify(target.name)}${forced} deleted${dryRunSuffix(session)}\n`,
  );
  return uid;
}

/** Ends when the object is gone or another took its name; throws CliError after `timeoutMs`. */
export async function waitForDeletion(
  session: Session,
  options: { readonly target: Target; readonly uid: string; readonly timeoutMs: number },
): Promise<void> {
  const { target, uid, timeoutMs } = options;
  const { resource, namespace, name = '' } = target;
  const timeout = timeoutMs > 0 ? AbortSignal.timeout(Math.ceil(timeoutMs)) : undefined;
  const signal =
    timeout === undefined ? session.io.signal : AbortSignal.any([timeout, session.io.signal]);
  try {
    for (;;) {
      const current = await session.client.get(targetPath(target));
      if (uid !== '' && textAt(current, 'metadata', 'uid') !== uid) return;
      const stream = await session.client.stream({
        path: resourcePath(resource, { namespace }),
        query: {
          watch: 'true',
          fieldSelector: `metadata.name=${name}`,
          resourceVersion: textAt(current, 'metadata', 'resourceVersion'),
        },
        signal,
      });
      for await (const event of watchEvents(stream.body)) {
        if (event.type === 'ERROR') break;
        if (event.type === 'DELETED') return;
      }
    }
  } catch (error) {
    if (isNotFound(error)) return;
    if (timeout?.aborted === true) {
      throw new CliError(`timed out waiting for the condition on ${resource.resource}/${name}`);
    }
    throw error;
  }
}
