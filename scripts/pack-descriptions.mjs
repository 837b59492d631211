// Packs the descriptions of built-in kinds into a bundle.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { brotliCompressSync, constants } from 'node:zlib';

/**
 * Plugin of esbuild: replaces the module that reads the description files by one that contains its
 * result, compressed, and unpacks it when called. Invalid files fail the build.
 */
export const packedDescriptions = {
  name: 'packed-descriptions',
  setup(build) {
    build.onLoad({ filter: /[/\\]descriptions[/\\]texts\.ts$/ }, async ({ path }) => {
      const params = { [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT };
      const texts = await textsIn(dirname(path), build.esbuild);
      const packed = brotliCompressSync(texts, { params }).toString('base64');
      const contents = [
        "import { brotliDecompressSync } from 'node:zlib';",
        'export const descriptionTexts = () =>',
        `  brotliDecompressSync(Buffer.from('${packed}', 'base64')).toString('latin1');`,
      ].join('\n');
      return { contents, loader: 'js' };
    });
  },
};

async function textsIn(folder, esbuild) {
  const source = readFileSync(join(folder, 'resolve.ts'), 'utf8');
  const { code } = await esbuild.transform(source, { loader: 'ts' });
  const encoded = Buffer.from(code).toString('base64');
  const { resolvedDescriptions } = await import(`data:text/javascript;base64,${encoded}`);
  const names = readdirSync(folder).filter((name) => name.endsWith('.txt'));
  const files = names.map((name) => ({
    group: name.slice(0, -'.txt'.length),
    text: readFileSync(join(folder, name), 'utf8'),
  }));
  return resolvedDescriptions(files);
}
