import { execFile } from 'node:child_process';
import { rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const bundle = join(root, 'node_modules', '.cache', `siege-${process.pid}.mjs`);
const seed = Number(process.env['SEED'] ?? 1);
const rounds = 500;

beforeAll(async () => {
  const script = new URL('../../scripts/siege.mjs', import.meta.url).href;
  const { bundleSiege } = (await import(script)) as { bundleSiege(outfile: string): Promise<void> };
  await bundleSiege(bundle);
}, 60_000);
afterAll(() => {
  for (const path of [bundle, `${bundle}.map`]) rmSync(path, { force: true });
});

/** Runs histories in a separate process and returns the figures that it prints. */
async function simulate(options: { readonly seed: number; readonly rounds: number }) {
  const flags = ['--part=simulation', `--seed=${options.seed}`, `--rounds=${options.rounds}`];
  // Histories create much garbage and keep little.
  const args = ['--max-semi-space-size=64', bundle, ...flags];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  const lines = stdout.trim().split('\n').slice(1);
  return new Map(lines.map((line) => line.split(/\s+/).slice(1) as [string, string]));
}

let figuresOfWhole: Promise<Map<string, string>> | undefined;

/** The figures of the run of all seeds, which the tests share. */
function whole(): Promise<Map<string, string>> {
  figuresOfWhole ??= simulate({ seed, rounds });
  return figuresOfWhole;
}

describe(`simulated histories from seed ${seed} on`, () => {
  test(`TRUST-8: ${rounds} histories with faults keep every guarantee`, async () => {
    const figures = await whole();
    const count = (name: string) => Number(figures.get(name));
    expect(count('histories')).toBe(rounds);
    expect(count('writes')).toBeGreaterThan(rounds * 5);
    expect(count('events')).toBeGreaterThan(rounds * 5);
    expect(count('crashes')).toBeGreaterThan(rounds / 10);
    // The part plays some seeds twice and compares the traces byte for byte.
    expect(count('repeated')).toBeGreaterThan(0);
  }, 300_000);

  test('a seed is the same history in every process', async () => {
    const { firstDigest, lastDigest } = Object.fromEntries(await whole());
    const alone = await simulate({ seed: seed + rounds - 1, rounds: 1 });
    expect(alone.get('lastDigest')).toBe(lastDigest);
    expect(alone.get('lastDigest')).not.toBe(firstDigest);
  }, 300_000);
});
