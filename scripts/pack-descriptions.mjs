// Packs the descriptions of built-in kinds into a bundle.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { brotliCompressSync, constants } from 'node:zlib';

/**
 * Plugin of esbuild: in place of the module that reads the description files comes one that holds
 * the same text compressed, and unpacks it when it is called.
 */
export const packedDescriptions = {
  name: 'packed-descriptions',
  setup(build) {
    build.onLoad({ filter: /[/\\]descriptions[/\\]texts\.ts$/ }, ({ path }) => {
      const params = { [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT };
      const packed = brotliCompressSync(textsIn(dirname(path)), { params }).toString('base64');
      const contents = [
        "import { brotliDecompressSync } from 'node:zlib';",
        'export const descriptionTexts = () =>',
        `  brotliDecompressSync(Buffer.from('${packed}', 'base64')).toString('latin1');`,
      ].join('\n');
      return { contents, loader: 'js' };
    });
  },
};

function textsIn(folder) {
  const files = readdirSync(folder).filter((name) => name.endsWith('.txt'));
  return files
    .map((name) => `@${name.slice(0, -'.txt'.length)}\n${readFileSync(join(folder, name), 'utf8')}`)
    .join('\n');
}
