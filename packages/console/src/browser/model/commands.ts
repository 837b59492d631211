import { apiVersionOf, isBrowsable, type Kind } from './kinds.ts';
import { type Route, routeOfKind, tableRoute } from './route.ts';

/** A page or action in the command palette. */
export interface Command {
  readonly label: string;
  /** Distinguishes commands with the same label: `apps/v1`. */
  readonly detail: string;
  /** Additional search words. */
  readonly words: readonly string[];
  readonly target: Route | (() => unknown);
}

/**
 * Returns commands that open pages, the list of each kind, and the form to create an object of each
 * kind.
 * @param options.canCreate whether to offer the creation of a kind's objects
 */
export function navigationCommands(
  kinds: readonly Kind[],
  options: { readonly namespace: string; readonly canCreate: (kind: Kind) => boolean },
): Command[] {
  const { namespace, canCreate } = options;
  const pages: Command[] = [
    { label: 'Overview', detail: '', words: ['home'], target: { page: 'home' } },
    { label: 'Apply manifests', detail: '', words: ['upload'], target: { page: 'apply' } },
    {
      label: 'Access: my permissions',
      ...{ detail: '', words: ['rbac', 'permissions'] },
      target: { page: 'access', tab: 'mine', namespace },
    },
    {
      label: 'Access: who can …',
      ...{ detail: '', words: ['rbac', 'roles'] },
      target: { page: 'access', tab: 'who', namespace },
    },
  ];
  const lists = kinds.filter(isBrowsable).flatMap((kind): Command[] => {
    const detail = apiVersionOf(kind);
    const words = [kind.resource, ...kind.shortNames, ...kind.categories];
    const list = { label: kind.resource, detail, words, target: tableRoute(kind, namespace) };
    if (!kind.verbs.includes('create') || !canCreate(kind)) return [list];
    const resource = routeOfKind(kind);
    const target = { page: 'create', resource, namespace } as const;
    return [list, { label: `Create ${kind.kind}`, detail, words, target }];
  });
  return [...pages, ...lists];
}

/**
 * Returns the commands that match a query, best first. Each word of the query has to be a prefix, a
 * substring, or a subsequence of a word in the command. An empty query returns all in order.
 */
export function rankCommands<T extends Pick<Command, 'label' | 'detail' | 'words'>>(
  commands: readonly T[],
  query: string,
): T[] {
  const queryWords = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (queryWords.length === 0) return [...commands];
  return commands
    .map((command) => ({ command, score: scoreOf(command, queryWords) }))
    .filter(({ score }) => score > 0)
    .sort((left, right) => right.score - left.score)
    .map(({ command }) => command);
}

function scoreOf(
  { label, detail, words }: Pick<Command, 'label' | 'detail' | 'words'>,
  queryWords: readonly string[],
): number {
  const title = label.toLowerCase();
  const others = [...words, detail].map((word) => word.toLowerCase());
  let score = 1;
  for (const word of queryWords) {
    const best = Math.max(
      wordScore(title, word) * 2,
      ...others.map((text) => wordScore(text, word)),
    );
    if (best === 0) return 0;
    score += best;
  }
  // Of equally good matches, the shorter one is closer to the query.
  return score - Math.min(title.length, 100) / 1000;
}

function wordScore(text: string, word: string): number {
  if (text === word) return 8;
  if (text.startsWith(word)) return 6;
  const at = text.indexOf(word);
  if (at > 0) return /\w/.test(text[at - 1] ?? '') ? 3 : 5;
  let from = 0;
  for (const letter of word) {
    from = text.indexOf(letter, from) + 1;
    if (from === 0) return 0;
  }
  return 1;
}
