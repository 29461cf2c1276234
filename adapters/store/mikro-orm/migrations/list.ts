import { Migration001Initial } from './001-initial.ts';
import { Migration002Owners } from './002-owners.ts';
import { Migration003DecisionLog } from './003-decision-log.ts';
import { Migration004Approvals } from './004-approvals.ts';
import { Migration005Spent } from './005-spent.ts';
import { Migration006Retention } from './006-retention.ts';

/** In the order in which they run; a name is never given twice and never changed. */
export const MIGRATIONS = [
  { name: '001-initial', class: Migration001Initial },
  { name: '002-owners', class: Migration002Owners },
  { name: '003-decision-log', class: Migration003DecisionLog },
  { name: '004-approvals', class: Migration004Approvals },
  { name: '005-spent', class: Migration005Spent },
  { name: '006-retention', class: Migration006Retention },
];
