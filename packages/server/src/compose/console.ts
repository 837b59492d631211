import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { getRawAsset, isSea } from 'node:sea';
import { fileURLToPath } from 'node:url';
import { type FileSource, loadStaticFiles, type StaticFiles } from '@wheelhouse/console';
import type { Logger, OnExchange } from '@wheelhouse/machinery';
import { flagsIn } from '../flags/flags.ts';
import type { Feature } from './feature.ts';

/**
 * Defined by the build as the folder of the server's bundle; undefined in the library and the
 * sources.
 */
declare const bundleDirectory: string | undefined;

/** The web console. */
export interface ConsoleSettings {
  /** The folder of the console's built files; absent when the console is off (CLIENT-4). */
  readonly console?: { readonly directory: string };
}

/** Flags of the web console. */
const consoleFlags = flagsIn('Generic', {
  'web-console': {
    after: 'dialect',
    type: 'bool',
    default: 'true',
    stage: 'own',
    help: "Serve a web console at /console/: static files that anybody may load; the console reads the API with the user's own credential.",
  },
});

/** The web console: static files that run in the browser as a client of the API. */
export const consoleFeature: Feature<typeof consoleFlags, ConsoleSettings> = {
  flags: consoleFlags,
  settings: (values) =>
    values['web-console'] ? { console: { directory: consoleDirectory() } } : {},
};

const root = '/console';

/** Candidate folders relative to the library, to its chunks, and to the sources. */
const builtAt = ['console', '../console', '../../dist/console'];

/** The folder that the build puts the console's files in. */
function consoleDirectory(): string {
  if (typeof bundleDirectory === 'string') return join(bundleDirectory, 'console');
  const places = builtAt.map((place) => fileURLToPath(new URL(place, import.meta.url)));
  const existing = places.find((place) => existsSync(join(place, 'index.html')));
  return existing ?? places[places.length - 1]!;
}

/** The files embedded in the single executable (`scripts/executable.mjs`). */
const assetSource: FileSource = {
  names: async () => JSON.parse(asset('console.json').toString('utf8')) as string[],
  read: async (name) => asset(`console/${name}`),
};

/** Returns a copy, because the memory of the program file must not change. */
const asset = (name: string): Buffer =>
  Buffer.from(new Uint8Array(getRawAsset(name) as ArrayBuffer));

/**
 * Answers requests for the console's files ahead of all gates, since the files are the same for
 * all users, and passes other requests to `answer`. The files are read on first use. Returns
 * `answer` itself if the console is off.
 */
export function withConsole(
  { console, logger }: ConsoleSettings & { readonly logger: Logger },
  answer: OnExchange,
): OnExchange {
  if (console === undefined) return answer;
  const { directory } = console;
  let files: Promise<StaticFiles> | undefined;
  const open = async (): Promise<StaticFiles> => {
    const { createStaticFiles, folderSource } = await loadStaticFiles();
    const onFault = (error: unknown) => logger.error('cannot read the console', { error });
    const source = isSea() ? assetSource : folderSource(directory);
    return createStaticFiles({ source, onFault });
  };
  return (exchange) => {
    if (!isBelowRoot(exchange.url)) return answer(exchange);
    files ??= open();
    return files.then((staticFiles) => staticFiles.answer(exchange));
  };
}

/** Whether a URL, as received, belongs to the console. */
const isBelowRoot = (url: string) =>
  url.startsWith(root) && (url.length === root.length || '/?'.includes(url[root.length] ?? ''));
