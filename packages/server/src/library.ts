import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLogger, systemClock } from '@wheelhouse/machinery';
import { writeAdminKubeconfig } from './compose/certificates/admin-kubeconfig.ts';
import { FlagError } from './compose/flags/flags.ts';
import { readOptions } from './compose/flags/options.ts';
import { startServer } from './compose/server.ts';
import { ensureAdminToken } from './compose/storage/data-directory.ts';

/** A control plane that runs in this process. */
export interface ControlPlane {
  /** `https://127.0.0.1:34567` */
  readonly url: string;
  /** The CA to trust. */
  readonly caPem: string;
  /** A bearer token of group system:masters. */
  readonly token: string;
  /** A kubeconfig file with both, for clients that read one; gone after `stop`. */
  readonly kubeconfig: string;
  /** Stops serving, ends watches and removes everything it has written. */
  stop(): Promise<void>;
}

/**
 * Starts a control plane for a test or a program (CLIENT-3): on memory, on a free port of loopback,
 * with its own CA and administrator, and nothing shared with others in the process. Resolves when
 * it is ready. `flags` are those of `wheelhouse serve` and come last, so they win; a data directory
 * among them is kept. Throws FlagError for one that is wrong.
 */
export async function startControlPlane(
  options: { readonly flags?: readonly string[] } = {},
): Promise<ControlPlane> {
  const directory = mkdtempSync(join(tmpdir(), 'wheelhouse-'));
  const discard = () => rmSync(directory, { recursive: true, force: true });
  try {
    return await startIn(directory, { flags: options.flags ?? [], discard });
  } catch (error) {
    discard();
    throw error;
  }
}

async function startIn(
  directory: string,
  { flags, discard }: { flags: readonly string[]; discard: () => void },
): Promise<ControlPlane> {
  const outcome = readOptions([
    '--bind-address=127.0.0.1',
    '--secure-port=0',
    ...(flags.some((flag) => flag.startsWith('--etcd-servers'))
      ? []
      : ['--storage-backend=memory']),
    `--data-dir=${directory}`,
    `--cert-dir=${join(directory, 'certificates')}`,
    ...flags,
  ]);
  if (outcome.kind !== 'options') throw new FlagError('a control plane takes flags of serve only');
  const { config } = outcome.options;
  const token = ensureAdminToken(directory);
  const server = await startServer({
    ...config,
    authentication: { ...config.authentication, adminToken: token },
    clock: systemClock,
    logger: silentLogger,
  });
  const { url, caPem } = server;
  const kubeconfig = join(directory, 'kubeconfig');
  const authority = caPem === undefined ? {} : { caPem };
  writeAdminKubeconfig({
    path: kubeconfig,
    server: url,
    ...authority,
    credential: { token },
    context: 'wheelhouse',
  });
  await server.ready;
  const stop = async () => {
    await server.stop();
    discard();
  };
  return { url, caPem: caPem ?? '', token, kubeconfig, stop };
}
