import { ApiError } from '@wheelhouse/client';
import { dryRunFlag, dryRunOf, dryRunSuffix, rawConflicts, sendRaw } from '../apply/writes.ts';
import type { Command } from '../command.ts';
import {
  checkCascade,
  type Deletion,
  deleteOptions,
  deletionFlags,
  isNotFound,
  waitForDeletion,
} from '../deletion.ts';
import { ContextError, reportFailures, visitEach } from '../errors.ts';
import { CliError, throwFirst } from '../io.ts';
import { resourceLabel, textAt } from '../objects.ts';
import {
  allConflicts,
  allFlag,
  checkSelected,
  expandTargets,
  hasSelector,
  selectionFlags,
  selectTargets,
  type Target,
  targetPath,
} from '../selection.ts';
import type { Session } from '../session.ts';
import { withProgress } from '../terminal.ts';

/**
 * Deletes objects and, unless `--wait=false`, waits until they are gone. With a selector or
 * `--all`, objects that do not exist are no failure.
 */
export const deleteCommand: Command = {
  name: 'delete',
  suggestedFor: ['rm'],
  completes: 'objects',
  summary: 'Delete resources by file names, stdin, resources and names, or selectors',
  usage: '([-f FILENAME] | TYPE [(NAME | -l label | --all)])',
  flags: [
    ...selectionFlags,
    dryRunFlag,
    allFlag,
    ...deletionFlags,
    { name: 'now', type: 'boolean', help: 'Same as --grace-period=1' },
    { name: 'force', type: 'boolean', help: 'Same as --grace-period=0' },
    { name: 'ignore-not-found', type: 'boolean', help: 'Ignore objects that do not exist' },
    {
      name: 'interactive',
      short: 'i',
      type: 'boolean',
      help: 'Ask for confirmation before deleting',
    },
    { name: 'raw', type: 'text', help: 'Raw path to delete; -f names the DeleteOptions' },
    { name: 'output', short: 'o', type: 'text', help: 'name prints TYPE/NAME only' },
  ],
  async run(session, args) {
    const { flags, io } = session;
    checkCascade(session);
    if (flags.boolean('now') && (flags.integer('grace-period') ?? -1) !== -1) {
      throw new CliError('--now and --grace-period cannot be specified together');
    }
    const dryRun = dryRunOf(session);
    const raw = flags.text('raw') ?? '';
    if (raw !== '') {
      checkFlags(session);
      return sendRaw(session, 'DELETE', raw);
    }
    const selects = hasSelector(flags);
    if (flags.boolean('all') && selects) {
      throw new CliError("setting 'all' parameter but found a non empty selector. ");
    }
    const targets = await selectTargets(session, args, {
      filesMatch: 'file',
      all: 'excludes names',
    });
    checkSelected(session, targets);
    checkFlags(session);
    const expanded = await expandTargets(session, targets);
    if (expanded.length === 0) {
      io.out('No resources found\n');
      return 0;
    }
    if (flags.boolean('interactive') && !(await isConfirmed(session, expanded))) {
      io.out('deletion is cancelled\n');
      return 0;
    }
    const ignoresMissing = flags.boolean('ignore-not-found', flags.boolean('all') || selects);
    let warnsOfScope = hasNamespaceFlag(session);
    const deleted: Deletion[] = [];
    const failures = await visitEach(io, expanded, async (target) => {
      if (warnsOfScope && !target.resource.namespaced) {
        io.err(scopeWarning);
        warnsOfScope = false;
      }
      try {
        deleted.push({ target, uid: await deleteOne(session, target) });
      } catch (error) {
        if (isNotFound(error) && ignoresMissing) return;
        const action = `error when deleting ${JSON.stringify(target.source)}`;
        throw target.source === undefined ? error : new ContextError(action, error);
      }
    });
    if (failures.length > 0) return reportFailures(io, failures);
    if (dryRun === 'none' && flags.boolean('wait', true)) await waitForAll(session, deleted);
    return 0;
  },
};

/** Waits until deleted objects are gone, unless the user may not read them. */
async function waitForAll(session: Session, deleted: readonly Deletion[]): Promise<void> {
  const deadline = session.deadline(session.flags.durationMs('timeout') || undefined);
  try {
    for (const deletion of deleted) {
      const { resource, name = '' } = deletion.target;
      await withProgress(session, `waiting for ${resource.resource}/${name} to be gone`, () =>
        waitForDeletion(session, deletion, deadline),
      );
    }
  } catch (error) {
    const isUnreadable = error instanceof ApiError && (error.code === 403 || error.code === 405);
    if (!isUnreadable) throw error;
  }
}

const scopeWarning =
  'Warning: deleting cluster-scoped resources, not scoped to the provided namespace\n';

/** Whether `--namespace` limits the deletion. */
const hasNamespaceFlag = ({ flags }: Session): boolean =>
  (flags.text('namespace') ?? '') !== '' && !flags.boolean('all-namespaces');

/** Warns of `--force`. Throws CliError for conflicting flags. */
function checkFlags(session: Session): void {
  const { flags, io } = session;
  const output = flags.text('output') ?? '';
  const isRaw = (flags.text('raw') ?? '') !== '';
  throwFirst([
    output !== '' &&
      output !== 'name' &&
      `unexpected -o output mode: ${output}. We only support '-o name'`,
    ...allConflicts(session),
    flags.boolean('force') &&
      graceSeconds(session) > 0 &&
      '--force and --grace-period greater than 0 cannot be specified together',
  ]);
  if (flags.boolean('force')) {
    io.err(
      'Warning: Immediate deletion does not wait for confirmation that the running resource ' +
        'has been terminated. The resource may continue to run on the cluster indefinitely.\n',
    );
  }
  if (!isRaw) return;
  throwFirst([
    flags.boolean('interactive') && '--interactive can not be used with --raw',
    ...rawConflicts(session),
  ]);
}

/** Lists the objects to delete, and asks the user to confirm. */
async function isConfirmed(session: Session, targets: readonly Target[]): Promise<boolean> {
  const { io } = session;
  const lines = targets.map(({ resource, name = '' }) => `${resourceLabel(resource)}/${name}\n`);
  io.out(`You are about to delete the following ${targets.length} resource(s):\n${lines.join('')}`);
  io.out('Do you want to continue? (y/n): ');
  const answer = io.line === undefined ? await io.stdin() : await io.line();
  return /^\s*y(\s|$)/i.test(answer);
}

/** The grace period of the flags in seconds; negative for the server's default. */
function graceSeconds({ flags }: Session): number {
  const grace = flags.boolean('now') ? 1 : (flags.integer('grace-period') ?? -1);
  if (flags.boolean('force')) return grace < 0 ? 0 : grace;
  // Only --force deletes immediately; a period of zero becomes one second.
  return grace === 0 ? 1 : grace;
}

/** Deletes an object and reports it. Resolves with its UID; empty if the response has none. */
async function deleteOne(session: Session, target: Target): Promise<string> {
  let uid = '';
  // Like kubectl, do not check that the object exists in a client dry run.
  if (dryRunOf(session) !== 'client') {
    const { object } = await session.client.send({
      method: 'DELETE',
      path: targetPath(target),
      body: deleteOptions(session, graceSeconds(session)),
    });
    uid = textAt(object, 'details', 'uid') || textAt(object, 'metadata', 'uid');
  }
  const label = resourceLabel(target.resource);
  const forceLabel = session.flags.boolean('force') ? ' force' : '';
  session.io.out(
    session.flags.text('output') === 'name'
      ? `${label}/${target.name}\n`
      : `${label} ${JSON.stringify(target.name)}${forceLabel} deleted${dryRunSuffix(session)}\n`,
  );
  return uid;
}
