import { dryRunFlag, dryRunOf, dryRunSuffix, sendRaw } from '../apply/writes.ts';
import type { Command } from '../command.ts';
import { deleteOptions, deletionFlags, isNotFound, waitForDeletion } from '../deletion.ts';
import { ContextError, describeError } from '../errors.ts';
import { throwFirst } from '../io.ts';
import { resourceLabel, textAt } from '../objects.ts';
import {
  allFlag,
  checkSelected,
  expandTargets,
  selectionFlags,
  selectTargets,
  type Target,
  targetPath,
} from '../selection.ts';
import type { Session } from '../session.ts';
import { withProgress } from '../terminal.ts';

export const deleteCommand: Command = {
  name: 'delete',
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
    checkFlags(session);
    const raw = session.flags.text('raw') ?? '';
    if (raw !== '') return sendRaw(session, 'DELETE', raw);
    const targets = await selectTargets(session, args);
    checkSelected(session, targets);
    const expanded = await expandTargets(session, targets);
    if (expanded.length === 0) {
      session.io.out('No resources found\n');
      return 0;
    }
    if (session.flags.boolean('interactive') && !(await isConfirmed(session, expanded))) {
      session.io.out('deletion is cancelled\n');
      return 0;
    }
    if (session.flags.boolean('force') && dryRunOf(session) === 'none') {
      session.io.err(
        'Warning: Immediate deletion does not wait for confirmation that the running resource ' +
          'has been terminated. The resource may continue to run on the cluster indefinitely.\n',
      );
    }
    const deleted: { target: Target; uid: string }[] = [];
    let exitCode = 0;
    for (const target of expanded) {
      try {
        deleted.push({ target, uid: await deleteOne(session, target) });
      } catch (error) {
        if (isNotFound(error) && session.flags.boolean('ignore-not-found')) continue;
        const action = `error when deleting ${JSON.stringify(target.source)}`;
        const reported = target.source === undefined ? error : new ContextError(action, error);
        session.io.err(describeError(reported).text);
        exitCode = 1;
      }
    }
    if (session.flags.boolean('wait', true) && dryRunOf(session) === 'none') {
      const timeoutMs = session.flags.durationMs('timeout') ?? 0;
      for (const deletion of deleted) {
        const { resource, name = '' } = deletion.target;
        await withProgress(session, `waiting for ${resource.resource}/${name} to be gone`, () =>
          waitForDeletion(session, { ...deletion, timeoutMs }),
        );
      }
    }
    return exitCode;
  },
};

/** Throws CliError for conflicting flags. */
function checkFlags({ flags }: Session): void {
  const grace = flags.integer('grace-period') ?? -1;
  const output = flags.text('output') ?? '';
  const selects = flags.has('selector') || flags.has('field-selector');
  const isRaw = (flags.text('raw') ?? '') !== '';
  throwFirst([
    flags.boolean('all') && selects && "setting 'all' parameter but found a non empty selector. ",
    flags.boolean('now') && grace >= 0 && '--now and --grace-period cannot be specified together',
    flags.boolean('force') &&
      grace > 0 &&
      '--force and --grace-period greater than 0 cannot be specified together',
    isRaw && flags.boolean('interactive') && '--interactive can not be used with --raw',
    isRaw && flags.list('filename').length > 1 && '--raw can only use a single local file or stdin',
    isRaw && output !== '' && '--raw and --output are mutually exclusive',
    output !== '' &&
      output !== 'name' &&
      `unexpected -o output mode: ${output}. We only support '-o name'`,
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

/** The grace period of `--force` and `--now` in seconds; undefined to use `--grace-period`. */
function graceSeconds({ flags }: Session): number | undefined {
  if (flags.boolean('force')) return 0;
  // Only --force deletes immediately; a period of zero becomes one second.
  return flags.boolean('now') || flags.integer('grace-period') === 0 ? 1 : undefined;
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
