import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { JsonObject } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), 'utf8');

/**
 * The value of a constant, or of a member of an object of constants, that is a product of numbers.
 */
function constantOf(reference: string): number {
  const [path = '', name = ''] = reference.split('#');
  const found = new RegExp(`(?:const ${name} =|\\b${name}:) ([\\d_. *]+)[;,]`).exec(read(path));
  if (found === null) throw new Error(`no number ${reference}`);
  const factors = (found[1] ?? '').replaceAll('_', '').split('*').map(Number);
  return factors.reduce((product, factor) => product * factor, 1);
}

describe('docs/THREATS.md', () => {
  const page = read('docs/THREATS.md');
  const rows = [...page.matchAll(/^\| (.+?) \| ([\d,.]+) \| `(packages\/[^`]+)` \|$/gm)];

  test('has the numbers of the code', () => {
    expect(rows.length).toBeGreaterThan(40);
    for (const [, label, number, reference = ''] of rows) {
      const value = constantOf(reference).toLocaleString('en-US');
      expect(`${label}: ${number}`).toBe(`${label}: ${value}`);
    }
  });

  test('has a constant for every limit', () => {
    const limits = page.slice(page.indexOf('\n## Limits'));
    const lines = limits.split('\n').filter((line) => /^\| (?!limit)/.test(line));
    expect(lines).toHaveLength(rows.length);
  });

  test('has the defaults of the flags that it names', () => {
    const [, body = ''] = /at most ([\d,]+) bytes \(`--max-request-body-bytes`\)/.exec(page) ?? [];
    const flags = read('packages/server/src/compose/limits/settings.ts');
    expect(flags).toMatch(
      new RegExp(`'max-request-body-bytes': \\{[^}]*default: '${body.replaceAll(',', '')}'`),
    );
    expect(page).toContain('one minute\n(`--request-timeout`)');
    expect(flags).toMatch(/'request-timeout': \{[^}]*default: '1m0s'/);
  });
});

/** An entry of `packages` in package-lock.json. */
interface LockedPackage {
  readonly version: string;
  readonly resolved?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly integrity?: string;
  readonly link?: boolean;
  readonly dev?: boolean;
  readonly devOptional?: boolean;
}

const lock = JSON.parse(read('package-lock.json')) as {
  readonly packages: Readonly<Record<string, LockedPackage>>;
};
/** Those of others: workspaces are links to folders. */
const packages = Object.entries(lock.packages).filter(
  ([path, { link }]) => path.startsWith('node_modules/') && link !== true,
);

describe('package-lock.json', () => {
  // A release may precede its binaries for other platforms, whose entries then have no hash:
  // `overrides` in package.json names releases that are complete.
  test('has an integrity hash for every package and platform', () => {
    const without = packages.filter(([, entry]) => !/^sha512-/.test(entry.integrity ?? ''));
    expect(without.map(([path]) => path)).toEqual([]);
  });

  test('names no registry', () => {
    expect(packages.filter(([, entry]) => entry.resolved !== undefined)).toEqual([]);
  });
});

test('npm run sbom lists every package of a release, with its hash', () => {
  const script = join(root, 'scripts', 'sbom.mjs');
  const { status, stdout } = spawnSync(process.execPath, [script], { encoding: 'utf8' });
  expect(status).toBe(0);
  const document = JSON.parse(stdout) as {
    readonly bomFormat: string;
    readonly components: readonly { name: string; version: string; hashes: JsonObject }[];
  };
  expect(document.bomFormat).toBe('CycloneDX');
  const hashes = new Map<string, JsonObject>(
    document.components.map((component) => [
      `${component.name}@${component.version}`,
      component.hashes,
    ]),
  );
  const shipped = packages.filter(([, { dev, devOptional }]) => !dev && !devOptional);
  const names = document.components.map((component) => component.name);
  expect(names).toEqual(expect.arrayContaining(Object.keys(lock.packages['']?.dependencies ?? {})));
  expect(names).not.toContain('vitest');
  for (const [path, { version, integrity }] of shipped) {
    const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
    const content = Buffer.from((integrity ?? '').slice('sha512-'.length), 'base64').toString(
      'hex',
    );
    expect(hashes.get(`${name}@${version}`), name).toEqual([{ alg: 'SHA-512', content }]);
  }
});
