import { DatabaseSync } from 'node:sqlite';

/** Leaves a write transaction open until it is killed. */
const [file = ''] = process.argv.slice(2);
const database = new DatabaseSync(file);
database.exec('begin immediate');
database.exec("insert into users (tenant, name, roles, disabled, slice, created_at_ms) values ('acme', 'ghost', '[]', 0, 99, 0)");
process.stdout.write('written, not committed\n');
setInterval(() => database.isOpen, 60_000);
