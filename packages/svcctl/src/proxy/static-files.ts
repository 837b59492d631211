import { createReadStream, realpathSync, statSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import path from 'node:path';
import { pipeline } from 'node:stream';

/** Answers with a file of a folder; `name` is relative and decoded. */
export type StaticFiles = (name: string, response: ServerResponse) => void;

const types: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
};

/** Serves a folder's files, its `index.html` for a folder, and nothing outside of it. */
export function createStaticFiles(folder: string): StaticFiles {
  return (name, response) => {
    const file = find(folder, name);
    if (file === undefined) {
      response.writeHead(404, { 'content-type': 'text/plain; charset=utf-8' });
      response.end('404 page not found\n');
      return;
    }
    const type = types[path.extname(file).toLowerCase()] ?? 'application/octet-stream';
    response.writeHead(200, { 'content-type': type, 'x-content-type-options': 'nosniff' });
    pipeline(createReadStream(file), response, () => {});
  };
}

function find(folder: string, name: string): string | undefined {
  try {
    const root = realpathSync(folder);
    let file = realpathSync(path.join(root, name));
    if (statSync(file).isDirectory()) file = realpathSync(path.join(file, 'index.html'));
    // After links and dots are followed: a link must not lead out either.
    return file.startsWith(root + path.sep) && statSync(file).isFile() ? file : undefined;
  } catch {
    return undefined;
  }
}
