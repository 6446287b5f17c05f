-- The ferry line with its ids in the opposite order, and more of everything: what is right by chance there is wrong here.
PRAGMA foreign_keys = OFF;
UPDATE vessel SET id = -id;
UPDATE vessel SET id = 4 + id;
UPDATE sailing SET id = -id, vessel_id = 4 - vessel_id;
UPDATE sailing SET id = 39 + id;
UPDATE booking SET sailing_id = 39 - sailing_id;

INSERT INTO port VALUES
  (6, 'Ytterskjær', 'Tindeholm');
INSERT INTO vessel VALUES
  (4, 'Havørn', 90, 2005);
INSERT INTO sailing VALUES
  (39, 4, 6, 1, '2025-06-09 08:00', 3900),
  (40, 4, 1, 6, '2025-06-15 18:00', 3900),
  (41, 3, 1, 5, '2025-06-09 10:00', 12900);
INSERT INTO booking VALUES
  (58, 39, 'Kari Ness', 16, '2025-04-20 10:00', NULL),
  (59, 40, 'Anna Lie', 3, '2025-05-30 12:00', '2025-06-01 09:00'),
  (60, 41, 'Bjarne Moe', 2, '2025-05-02 08:00', NULL);
