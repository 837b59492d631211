import type { JsonObject } from '@wheelhouse/machinery';
import { retryConflicts } from '../../apply/writes.ts';
import type { Command } from '../../command.ts';
import { reportFailures, visitEach } from '../../errors.ts';
import type { FlagSpec } from '../../flags.ts';
import { CliError } from '../../io.ts';
import { hasManifests, manifestFlags } from '../../manifests.ts';
import { listAt, nameOf, objectAt, withGroup } from '../../objects.ts';
import { outputFlags, reportObject } from '../../output/output.ts';
import { fetchTarget, selectTargets, type Target, targetPath } from '../../selection.ts';
import type { Session } from '../../session.ts';

const flags: readonly FlagSpec[] = [
  ...manifestFlags,
  ...outputFlags,
  {
    name: 'force',
    type: 'boolean',
    help: 'Update the request even if it already has this decision',
  },
];

/** A decision about a certificate signing request, and its opposite. */
interface Decision {
  readonly type: 'Approved' | 'Denied';
  readonly excludes: 'Approved' | 'Denied';
  readonly verb: 'approve' | 'deny';
}

const createDecisionCommand = (summary: string, decision: Decision): Command => ({
  name: decision.verb,
  summary,
  usage: '(-f FILENAME | NAME)',
  flags,
  run: (session, args) => decide(session, args, decision),
});

/**
 * Approves or denies certificate signing requests. Reads a request again after a conflict; a
 * decided one stays as it is without `--force`.
 */
export const certificateCommand: Command = {
  name: 'certificate',
  summary: 'Modify certificate resources',
  usage: 'SUBCOMMAND',
  alone: 'succeeds',
  subcommands: [
    createDecisionCommand('Approve a certificate signing request', {
      type: 'Approved',
      excludes: 'Denied',
      verb: 'approve',
    }),
    createDecisionCommand('Deny a certificate signing request', {
      type: 'Denied',
      excludes: 'Approved',
      verb: 'deny',
    }),
  ],
};

async function decide(
  session: Session,
  args: readonly string[],
  decision: Decision,
): Promise<number> {
  if (args.length === 0 && !hasManifests(session)) {
    throw new CliError('one or more CSRs must be specified as <name> or -f <filename>');
  }
  const words = args.length === 0 || args[0]?.includes('/') ? args : ['csr', ...args];
  const visit = async (target: Target): Promise<void> => {
    const { kind, group } = target.resource;
    if (kind !== 'CertificateSigningRequest') {
      const label = withGroup(kind, group);
      throw new CliError(`can only handle CertificateSigningRequest objects, got ${label}`);
    }
    const request = await retryConflicts(attemptsMax, () => decideOne(session, target, decision));
    reportObject(session, request, decision.type.toLowerCase());
  };
  const targets = await selectTargets(session, words);
  if (targets.length === 0) session.io.out('No resources found\n');
  return reportFailures(session.io, await visitEach(session.io, targets, visit));
}

/** Maximum number of attempts after conflicts. */
const attemptsMax = 10;

async function decideOne(
  session: Session,
  target: Target,
  decision: Decision,
): Promise<JsonObject> {
  const [request = {}] = await fetchTarget(session, target);
  const conditions = listAt(request, 'status', 'conditions');
  if (conditions.some((existing) => existing['type'] === decision.excludes)) {
    const label = JSON.stringify(nameOf(request));
    throw new CliError(`certificate signing request ${label} is already ${decision.excludes}`);
  }
  const isDecided = conditions.some((existing) => existing['type'] === decision.type);
  if (isDecided && !session.flags.boolean('force')) return request;
  const now = session.timestamp();
  const condition = {
    lastUpdateTime: now,
    message: `This CSR was ${decision.type.toLowerCase()} by svcctl certificate ${decision.verb}.`,
    reason: decision.type === 'Approved' ? 'SvcctlApprove' : 'SvcctlDeny',
    status: 'True',
    type: decision.type,
  };
  const status = objectAt(request, 'status');
  const after = isDecided ? conditions : [...conditions, condition];
  const body = { ...request, status: { ...status, conditions: after } };
  const path = targetPath(target, 'approval');
  return (await session.client.send({ method: 'PUT', path, body })).object;
}
