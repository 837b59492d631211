export {
  isEmptySelector,
  type LabelSelector,
  selects,
  validateLabelSelector,
} from '../meta/label-selector.ts';
