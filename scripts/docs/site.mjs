// The documentation site: its navigation, and the conversion of links between pages to links of the
// site.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const docs = join(root, 'docs');

/** Files outside docs/ that a page of the site includes, with that page. */
const shownElsewhere = { 'examples/README.md': 'examples.md', 'bench/RESULTS.md': 'RESULTS.md' };

/** The first heading of a page, or of the file that it includes, without code marks. */
function titleOf(page) {
  const text = readFileSync(join(docs, page), 'utf8');
  const [, included] = /^<!--@include: (\S+)-->/.exec(text) ?? [];
  if (included !== undefined) return titleOf(join(dirname(page), included));
  const [, title = page] = /^# (.+)$/m.exec(text) ?? [];
  return title.replaceAll('`', '');
}

const entry = (page) => ({ text: titleOf(page), link: `/${page.replace(/\.md$/, '')}` });
const group = (text, pages, options = {}) => ({ text, items: pages.map(entry), ...options });
const pagesOf = (folder) =>
  readdirSync(join(docs, folder))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `${folder}/${name}`);

/** The pages of a folder in reading order; unlisted pages come last. */
const ordered = (folder, names) => {
  const place = (page) => names.indexOf(page.slice(folder.length + 1, -'.md'.length));
  const rank = (page) => (place(page) < 0 ? names.length : place(page));
  return pagesOf(folder).sort((left, right) => rank(left) - rank(right));
};

const guides = [
  'test-planes',
  'migrating-from-envtest',
  'custom-control-planes',
  'operations',
  'monitoring',
  'svcctl',
  'console',
  'troubleshooting',
];
const reference = ['flags', 'configuration', 'feature-gates', 'metrics', 'errors'];
const design = ['ARCHITECTURE.md', 'RELIABILITY.md', 'THREATS.md', 'CLIENTS.md', 'CONFORMANCE.md'];

function sidebar() {
  const start = ['server', 'go', 'typescript', 'python', 'rust', 'java'];
  return [
    group('Start', ['index.md', ...ordered('start', start), 'examples.md']),
    group('Guides', ordered('guides', guides)),
    group('Reference', ordered('reference', reference)),
    group('Design', [...design, 'RESULTS.md']),
    group('Decisions', pagesOf('decisions'), { collapsed: true }),
  ];
}

/**
 * Converts a link of `page`: links to pages stay, links to included files lead to their page, and
 * other links are removed, since the site has no copy of the repository.
 */
function siteLink(page, href) {
  if (/^(?:[a-z]+:|#|\/)/.test(href)) return href;
  const [, path, hash = ''] = /^([^#]*)(#.*)?$/.exec(href) ?? [];
  const target = posix.normalize(posix.join('docs', posix.dirname(page), path));
  if (target.startsWith('docs/') && target.endsWith('.md')) return href;
  const shown = shownElsewhere[target];
  return shown === undefined ? undefined : `/${shown}${hash}`;
}

/**
 * Links to files of the repository become plain text, and `:)` in a text does not become an emoji.
 */
function configureMarkdown(markdown) {
  markdown.disable('emoji');
  // An indented block is rendered like a fenced one.
  markdown.renderer.rules.code_block = (tokens, index, options, env, self) => {
    tokens[index].info = tokens[index].content.startsWith('$ ') ? 'console' : 'sh';
    return markdown.renderer.rules.fence(tokens, index, options, env, self);
  };
  markdown.core.ruler.push('site-links', ({ tokens, env }) => {
    const page = env.relativePath ?? '';
    for (const { children } of tokens) {
      const open = [];
      for (const token of children ?? []) {
        if (token.type === 'link_close' && open.pop() === undefined) token.tag = 'span';
        if (token.type !== 'link_open') continue;
        const link = siteLink(page, token.attrGet('href') ?? '');
        open.push(link);
        if (link !== undefined) token.attrSet('href', link);
        else Object.assign(token, { type: 'span_open', tag: 'span', attrs: null });
      }
    }
  });
}

/** The configuration of vitepress, which docs/.vitepress/config.mjs exports. */
export const siteConfig = {
  lang: 'en-US',
  title: 'Wheelhouse',
  description: "A control-plane API server with the Kubernetes API's semantics.",
  outDir: join(docs, '.vitepress', 'dist'),
  cacheDir: join(root, 'node_modules', '.cache', 'vitepress'),
  srcExclude: ['reference/generated/**'],
  lastUpdated: false,
  metaChunk: true,
  markdown: { linkify: false, config: configureMarkdown },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    nav: [
      { text: 'Start', link: '/start/server' },
      { text: 'Guides', link: '/guides/test-planes' },
      { text: 'Reference', link: '/reference/flags' },
      { text: 'Design', link: '/ARCHITECTURE' },
    ],
    sidebar: sidebar(),
  },
};
