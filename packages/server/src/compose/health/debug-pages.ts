import type { PlainAnswer } from '../../endpoints/call.ts';

/** A path below `/debug/` and the query it came with. */
export interface DebugRequest {
  readonly path: string;
  readonly query: URLSearchParams;
}

/** Gives the text of a path, undefined when the path is not its own. */
export type DebugPage = (request: DebugRequest) => string | undefined;

const headers = {
  'content-type': 'text/plain; charset=utf-8',
};

/** The answer of the first page that has one; undefined for paths that are none of theirs. */
export function debugAnswer(
  pages: readonly DebugPage[],
  request: DebugRequest,
): PlainAnswer | undefined {
  if (!request.path.startsWith('/debug/')) return undefined;
  for (const page of pages) {
    const body = page(request);
    if (body !== undefined) return { status: 200, headers, body };
  }
  return undefined;
}
