import type { TestServer } from '../support/harness.ts';

/** The text of a server's metrics. */
export const scrape = async (server: Pick<TestServer, 'get'>): Promise<string> =>
  (await server.get('/metrics')).text;

/** The value of the one sample of a metric that has all these labels. */
export function sample(text: string, name: string, labels: Record<string, string> = {}): number {
  const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
  const has = (line: string) => (part: string) =>
    line.includes(`{${part}`) || line.includes(`,${part}`);
  const lines = text.split('\n').filter((line) => {
    const at = line.search(/[{ ]/);
    return line.slice(0, at) === name && wanted.every(has(line));
  });
  if (lines.length > 1) throw new Error(`several samples:\n${lines.join('\n')}`);
  return Number(lines[0]?.split(' ').at(-1) ?? Number.NaN);
}
