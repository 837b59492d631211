export { siteConfig as default } from '../../scripts/docs/site.mjs';
