/** What tells a request that may last as long as its client likes. */
export interface Lasting {
  readonly isResourceRequest: boolean;
  readonly verb: string;
  readonly subresource: string;
  readonly path: string;
}

const longVerbs = new Set(['watch', 'proxy']);
const longSubresources = new Set(['attach', 'exec', 'log', 'portforward', 'proxy']);

/** Whether a request may take as long as it likes, its answer being a stream: as upstream tells it. */
export function isLongRunning({ isResourceRequest, verb, subresource, path }: Lasting): boolean {
  if (!isResourceRequest) return path.startsWith('/debug/pprof/');
  return longVerbs.has(verb) || longSubresources.has(subresource);
}
