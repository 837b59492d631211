import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { main, writeAdminKubeconfig } from '@wheelhouse/server/testing';
import { vi } from 'vitest';
import { temporaryFolder } from '../support/cleanup.ts';
import { adminToken, type ConfigChange, type TestServer } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

/** The result of a command. */
export interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the program's command line in this process. */
export async function wheelhouse(...args: readonly string[]): Promise<Outcome> {
  let stdout = '';
  let stderr = '';
  const out = vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    stdout += text;
    return true;
  });
  const error = vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    stderr += text;
    return true;
  });
  try {
    return { code: await main(args), stdout, stderr };
  } finally {
    out.mockRestore();
    error.mockRestore();
  }
}

/** Like `wheelhouse`, for commands that must succeed; returns the output. */
export async function succeed(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await wheelhouse(...args);
  if (code !== 0) throw new Error(`wheelhouse ${args.join(' ')}: ${stderr}`);
  return stdout;
}

/** A folder for data directories and backups, and servers on them, until the test ends. */
export interface BackupBench {
  /** Returns the absolute path of a name in the folder. */
  at(name: string): string;
  /** Starts a server on the data directory of that name, including its keys. */
  serve(dataDir: string, change?: ConfigChange): Promise<TestServer>;
  /** Writes a kubeconfig for a server, by default with the administrator's token. */
  kubeconfig(server: TestServer, token?: string): string;
}

/** Creates a folder for the current test. */
export function createBackupBench(): BackupBench {
  const folder = temporaryFolder();
  let kubeconfigs = 0;
  const at = (name: string) => join(folder, name);
  return {
    at,
    serve(dataDir, change = {}) {
      const path = at(dataDir);
      mkdirSync(path, { recursive: true });
      return withServer({
        store: { type: 'embedded', directory: join(path, 'store') },
        listen: { host: '127.0.0.1', port: 0, tls: { certDir: join(path, 'certificates') } },
        ...change,
      });
    },
    kubeconfig({ server }, token = adminToken) {
      kubeconfigs += 1;
      const path = at(`kubeconfig-${kubeconfigs}`);
      const { url, caPem } = server;
      const trust = caPem === undefined ? {} : { caPem };
      const credential = { token };
      writeAdminKubeconfig({ path, server: url, ...trust, credential, context: 'test' });
      return path;
    },
  };
}
