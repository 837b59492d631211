import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, onTestFinished } from 'vitest';
import { getCurrentTest } from 'vitest/suite';

/**
 * Calls a function when the current test has ended or, at the top level of a file or a `describe`
 * block, after its last test. Functions run in reverse order. Tests, `beforeEach`, and top levels
 * may call this, but `beforeAll` may not.
 */
export function atEnd(undo: () => unknown): void {
  const register = getCurrentTest() === undefined ? afterAll : onTestFinished;
  register(async () => {
    await undo();
  });
}

/** A resource that a test must stop or remove. */
type Ending =
  | { stop(): unknown }
  | { remove(): unknown }
  | { dispose(): unknown }
  | { close(): unknown };

/**
 * Ends a resource when the current test or file ends, as `atEnd` does; returns the resource. A
 * resource that fails to start is skipped.
 */
export function untilEnd<Resource extends Ending | Promise<Ending>>(resource: Resource): Resource {
  const started: Promise<Ending | undefined> = Promise.resolve(resource).catch(() => undefined);
  atEnd(async () => {
    const ending = await started;
    if (ending === undefined) return;
    if ('stop' in ending) return ending.stop();
    if ('remove' in ending) return ending.remove();
    return 'dispose' in ending ? ending.dispose() : ending.close();
  });
  return resource;
}

/** Creates an empty folder that exists until the current test or file ends; returns its path. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'wheelhouse-test-'));
  atEnd(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Writes a file that exists until the current test or file ends; returns its path. */
export function temporaryFile(name: string, text: string): string {
  const path = join(temporaryFolder(), name);
  writeFileSync(path, text);
  return path;
}
