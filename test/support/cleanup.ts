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
export function atEnd(cleanUp: () => unknown): void {
  const register = getCurrentTest() === undefined ? afterAll : onTestFinished;
  register(async () => {
    await cleanUp();
  });
}

/** A resource that a test must stop or remove. */
type Endable =
  | { stop(): unknown }
  | { remove(): unknown }
  | { dispose(): unknown }
  | { close(): unknown };

/**
 * Ends a resource when the current test or file ends, as `atEnd` does; returns the resource. A
 * resource that fails to start is skipped.
 */
export function untilEnd<Resource extends Endable | Promise<Endable>>(
  resource: Resource,
): Resource {
  const starting: Promise<Endable | undefined> = Promise.resolve(resource).catch(() => undefined);
  atEnd(async () => {
    const started = await starting;
    if (started === undefined) return;
    if ('stop' in started) return started.stop();
    if ('remove' in started) return started.remove();
    return 'dispose' in started ? started.dispose() : started.close();
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
