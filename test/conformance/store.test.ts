import { WORLDS } from '../store/worlds.ts';
import { storeConformance } from './store.ts';

for (const [name, make] of Object.entries(WORLDS)) storeConformance(name, make);
